"""Graphs for Aegra and for LangGraph's own server. Each node is a step: a checkpoint is kept after it."""

import asyncio
import os
from typing import TypedDict

import httpx
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    text: str
    chunks: int
    url: str
    n: int


observer = httpx.AsyncClient()


def in_sequence(*nodes):
    builder = StateGraph(State).add_sequence(nodes)
    return builder.add_edge(START, nodes[0][0])


def step(n):
    async def run(state: State):
        return {"text": f"{state['text']} {n}"}

    return (f"step {n}", run)


async def echo(state: State):
    return {"text": state["text"]}


async def write_chunks(state: State):
    write = get_stream_writer()
    for _ in range(state["chunks"]):
        write("chunk")
    return {}


async def tick(state: State):
    n = state.get("n", 0)
    await observer.post(state["url"], content=f"{os.getppid()} {os.getpid()}")
    await asyncio.sleep(0.1)
    return {"n": n + 1}


send = in_sequence(("echo", echo)).compile()
steps = in_sequence(step(1), step(2), step(3)).compile()
stream = in_sequence(("chunks", write_chunks)).compile()
ticker = in_sequence(("tick", tick)).add_edge("tick", "tick").compile()
