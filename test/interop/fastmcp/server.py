"""A tool server of FastMCP: plain tools, tools whose calls become tasks, and tools that ask."""

import asyncio
import sys

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

mcp = FastMCP("interop")
mcp.add_extension(TasksExtension())
calls = 0

FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


def ask():
    params = mcp_types.ElicitRequestFormParams(message="What is your name?", requested_schema=FORM)
    requests = {"name": mcp_types.ElicitRequest(params=params)}
    return mcp_types.InputRequiredResult(input_requests=requests, request_state="asked")


@mcp.tool
async def add(number: int) -> int:
    return number + 1


@mcp.tool(task=True)
async def report(city: str) -> str:
    global calls
    calls += 1
    await asyncio.sleep(1)
    return f"{city}, call {calls}"


@mcp.tool
async def greet(ctx: Context):
    if not ctx.input_responses:
        return ask()
    return f"{ctx.input_responses['name'].content['name']}, {ctx.request_state}"


@mcp.tool(task=True)
async def greet_later(ctx: Context):
    if not ctx.input_responses:
        return ask()
    answer = ctx.input_responses["name"]
    return answer.content["name"] if answer.action == "accept" else answer.action


mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]))
