"""The official A2A SDK's server for Python as its tutorial sets it up, with its own task store in Postgres and an `echo` agent."""

import os

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        message, ids = context.message, (context.task_id, context.context_id)
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(Task(id=ids[0], context_id=ids[1], status=status, history=[message]))
        updater = TaskUpdater(event_queue, *ids)
        await updater.start_work()
        chunks = int(MessageToDict(message.metadata).get("echo", {}).get("chunks", 1))
        for i in range(chunks):
            await updater.add_artifact(message.parts, "echo", append=i > 0, last_chunk=i == chunks - 1)
        await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


url, text = f"http://127.0.0.1:{os.environ['PORT']}/", ["text/plain"]
card = AgentCard(
    name="echo",
    description="Answers what it is told",
    version="1.0.0",
    supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=url)],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=text,
    default_output_modes=text,
    skills=[AgentSkill(id="echo", name="Echo", description="Answers what it is told", tags=["echo"])],
)
engine = create_async_engine(os.environ["DATABASE_URL"].replace("postgres:", "postgresql+asyncpg:"))
handler = DefaultRequestHandler(Echo(), DatabaseTaskStore(engine), card)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=int(os.environ["PORT"]), log_level="error")
