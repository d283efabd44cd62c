"""Calls the agent echo with the official SDK (`mcp`), in each era, and prints a line for each check: sdk_client.py URL TOKEN"""

import asyncio
import base64
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

URL, TOKEN = sys.argv[1:]
ASKS = {"baton/metadata": {"echo": {"askInput": True}}}
SLOW = {"baton/metadata": {"echo": {"delayMs": 600_000}}}
FILE = {"name": "a.bin", "mediaType": "application/octet-stream", "bytes": base64.b64encode(b"\0\xff").decode()}


async def answer(context, params):
    assert "What shall I echo?" in params.message, params
    return ElicitResult(action="accept", content={"answer": "from a person"})


class Caller:
    """A connection of one era: `auto` is 2026-07-28, `legacy` is a session by `initialize`."""

    def __init__(self, mode, token=TOKEN):
        self.mode = mode
        self.http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)

    async def __aenter__(self):
        transport = streamable_http_client(URL, http_client=self.http)
        self.client = Client(transport, mode=self.mode, elicitation_callback=answer, cache=None)
        return await self.client.__aenter__()

    async def __aexit__(self, *failure):
        await self.client.__aexit__(*failure)
        await self.http.aclose()


def text_of(result):
    return "".join(block.text for block in result.content if block.type == "text")


async def check_tools(mode):
    async with Caller(mode) as baton:
        assert baton.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25"), baton.protocol_version
        tools = {tool.name: tool for tool in (await baton.list_tools()).tools}
        assert {"echo", "task_status", "task_cancel"} <= set(tools), tools
        assert "message" in tools["echo"].input_schema["properties"], tools["echo"]


async def check_call(mode):
    async with Caller(mode) as baton:
        result = await baton.call_tool("echo", {"message": "hello"})
        assert text_of(result) == "hello" and not result.is_error, result


async def check_progress(mode):
    seen = []

    async def progress(done, total, message):
        seen.append(done)

    async with Caller(mode) as baton:
        meta = {"baton/metadata": {"echo": {"chunks": 3}}}
        result = await baton.call_tool("echo", {"message": "ab"}, meta=meta, progress_callback=progress)
        assert text_of(result) == "ababab", result
        assert len(seen) > 1 and seen == sorted(set(seen)), seen


async def check_files(mode):
    async with Caller(mode) as baton:
        result = await baton.call_tool("echo", {"message": "m", "files": [FILE], "data": {"n": [1]}})
        blobs = [block.resource.blob for block in result.content if block.type == "resource"]
        assert blobs == [FILE["bytes"]], result
        assert '"n"' in text_of(result) or result.structured_content == {"n": [1]}, result


async def check_long(mode):
    async with Caller(mode) as baton:
        handed = await baton.call_tool("echo", {"message": "x"}, meta=SLOW)
        task = handed.structured_content["taskId"]
    async with Caller(mode) as baton:
        status = await baton.call_tool("task_status", {"taskId": task})
        assert status.structured_content["state"] == "working", status
        await baton.call_tool("task_cancel", {"taskId": task})
        assert (await baton.call_tool("task_status", {"taskId": task})).is_error


async def check_question(mode):
    async with Caller(mode) as baton:
        result = await baton.call_tool("echo", {"message": "x"}, meta=ASKS)
        if mode == "legacy":
            task = result.structured_content["taskId"]
            result = await baton.call_tool("echo", {"message": "from a person", "taskId": task})
        assert text_of(result) == "from a person", result


async def check_errors(mode):
    async with Caller(mode) as baton:
        try:
            code = (await baton.call_tool("nothing", {})).content
        except MCPError as error:
            code = error.error.code
        assert code == -32602, code
        result = await baton.call_tool("echo", {"message": 7})
        assert result.is_error and "message" in text_of(result), result


def leaves(error):
    return [leaf for each in error.exceptions for leaf in leaves(each)] if isinstance(error, BaseExceptionGroup) else [error]


async def check_token(mode):
    try:
        async with Caller(mode, "wrong") as baton:
            raise AssertionError(await baton.list_tools())
    except* MCPError as group:
        said = [str(each) for each in leaves(group)]
        assert said == ["the token is not known"], said


async def main():
    for era, mode in {"2026-07-28": "auto", "2025-11-25": "legacy"}.items():
        for name, check in list(globals().items()):
            if not name.startswith("check_"):
                continue
            try:
                await asyncio.wait_for(check(mode), 60)
                print(f"ok {era} {name[6:]}", flush=True)
            except Exception as error:  # Each check says by itself what is wrong.
                print(f"failed {era} {name[6:]}: {error!r}", flush=True)


asyncio.run(main())
