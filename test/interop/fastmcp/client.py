"""Calls the agent echo as a client of MCP, and prints a line for each of its checks: client.py URL TOKEN"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp_tasks import call_tool_task

URL, TOKEN = sys.argv[1:]
ASKS = {"baton/metadata": {"echo": {"askInput": True}}}
SLOW = {"baton/metadata": {"echo": {"delayMs": 600_000}}}


async def answer(message, response_type, params, context):
    assert "What shall I echo?" in message, message
    return response_type(answer="from a person")


def client():
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return Client(StreamableHttpTransport(URL, headers=headers), elicitation_handler=answer)


def text_of(result):
    return "".join(block.text for block in result.content)


async def check_tools():
    async with client() as baton:
        assert "echo" in [tool.name for tool in await baton.list_tools()]


async def check_call():
    async with client() as baton:
        assert text_of(await baton.call_tool("echo", {"message": "hello"})) == "hello"


async def check_question():
    async with client() as baton:
        result = await baton.call_tool("echo", {"message": "x"}, meta=ASKS)
        assert text_of(result) == "from a person", result


async def check_task():
    async with client() as baton:
        task = await call_tool_task(baton, "echo", {"message": "a task"})
        assert text_of(await task.result()) == "a task"


async def check_task_with_a_question():
    async with client() as baton:
        task = await call_tool_task(baton, "echo", {"message": "x"}, meta=ASKS)
        assert text_of(await task.result()) == "from a person"


async def check_cancel():
    async with client() as baton:
        task = await call_tool_task(baton, "echo", {"message": "x"}, meta=SLOW)
        await task.cancel()
        assert (await task.status()).status == "cancelled"


async def main():
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        try:
            await asyncio.wait_for(check(), 60)
            print(f"ok {name[6:]}", flush=True)
        except Exception as error:  # Each check says by itself what is wrong.
            print(f"failed {name[6:]}: {error!r}", flush=True)


asyncio.run(main())
