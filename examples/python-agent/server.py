"""A LangGraph agent behind the A2A server of the Python SDK. It continues its tasks after a crash.

    python server.py [PORT] [FOLDER]

Two things are kept in FOLDER: the tasks of the server, and the finished steps of each graph. STEP_SECONDS is how long a step
takes (5), because there is no model here that takes its time.
"""

import asyncio
import contextlib
import os
import sys
from typing import TypedDict

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import DatabaseTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    ListTasksRequest,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    TaskState,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 9494
FOLDER = sys.argv[2] if len(sys.argv) > 2 else '.'
STEP_SECONDS = float(os.environ.get('STEP_SECONDS', '5'))


class State(TypedDict, total=False):
    topic: str
    outline: str
    text: str


# The steps. Each says which process ran it, so that you see what a crash has repeated.


async def outline(state: State) -> State:
    return {'outline': f'Outline of {state["topic"]}, by process {os.getpid()}'}


async def write(state: State) -> State:
    await asyncio.sleep(STEP_SECONDS)  # A call of a model goes here.
    return {'text': f'Text about {state["topic"]}, by process {os.getpid()}'}


def build_graph(checkpointer):
    graph = StateGraph(State)
    graph.add_node('outline', outline)
    graph.add_node('write', write)
    graph.add_edge(START, 'outline')
    graph.add_edge('outline', 'write')
    graph.add_edge('write', END)
    return graph.compile(checkpointer=checkpointer)


class GraphExecutor(AgentExecutor):
    """Runs one thread of the graph for each task. A task that the graph knows goes on after its last finished step."""

    def __init__(self, graph):
        self.graph = graph

    async def execute(self, context, event_queue):
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()

        config = {'configurable': {'thread_id': context.task_id}}
        known = (await self.graph.aget_state(config)).values
        given = None if known else {'topic': context.get_user_input()}
        # The state has the results of all finished steps: what was lost between a checkpoint and its event is sent now.
        # With `durability='sync'` a step begins when the one before it is on the disk.
        async for state in self.graph.astream(given, config, stream_mode='values', durability='sync'):
            for name in ('outline', 'text'):
                if name in state:
                    # The same id each time: an artifact that is sent again replaces itself.
                    await updater.add_artifact([new_text_part(state[name])], artifact_id=name, name=name)
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def continue_tasks(handler, tasks):
    """Starts the tasks again that a crash has cut. The SDK keeps them, but does not run them again by itself."""
    context = ServerCallContext()
    for state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING):
        page_token = ''
        while True:
            page = await tasks.list(ListTasksRequest(status=state, page_size=100, page_token=page_token), context)
            for task in page.tasks:
                # The last message of the user with its own id is not stored twice.
                message = [each for each in task.history if each.role == Role.ROLE_USER][-1]
                message.task_id, message.context_id = task.id, task.context_id
                at_once = SendMessageConfiguration(return_immediately=True)
                await handler.on_message_send(SendMessageRequest(message=message, configuration=at_once), context)
            page_token = page.next_page_token
            if not page_token:
                break


CARD = AgentCard(
    name='Writer',
    description='Writes a short text in two steps',
    version='1.0.0',
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    skills=[AgentSkill(id='write', name='Write', description='Writes about a topic', tags=['text'])],
    supported_interfaces=[
        AgentInterface(protocol_binding='JSONRPC', protocol_version='1.0', url=f'http://localhost:{PORT}/')
    ],
)


async def main():
    os.makedirs(FOLDER, exist_ok=True)
    tasks = DatabaseTaskStore(create_async_engine(f'sqlite+aiosqlite:///{FOLDER}/tasks.sqlite'))
    await tasks.initialize()
    async with AsyncSqliteSaver.from_conn_string(f'{FOLDER}/steps.sqlite') as checkpointer:
        handler = DefaultRequestHandler(GraphExecutor(build_graph(checkpointer)), tasks, CARD)

        @contextlib.asynccontextmanager
        async def lifespan(_app):
            # Before the port is open, so no request finds a task that does not run yet.
            await continue_tasks(handler, tasks)
            yield

        routes = create_agent_card_routes(CARD) + create_jsonrpc_routes(handler, '/')
        app = Starlette(routes=routes, lifespan=lifespan)
        server = uvicorn.Server(uvicorn.Config(app, host='127.0.0.1', port=PORT))
        await server.serve()


asyncio.run(main())
