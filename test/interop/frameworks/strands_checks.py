"""Strands Agents: an `A2AAgent`, as its users have it. It sends only text, and always streams."""

from functools import partial
from urllib.parse import urljoin

import httpx
from a2a.client import ClientConfig
from strands.agent.a2a_agent import A2AAgent

NAME = 'Strands Agents'


def equal(actual, expected):
    assert actual == expected, f'expected {expected!r}, got {actual!r}'


def agent_of(caller, slug):
    base_url, token = caller
    http = httpx.AsyncClient(headers={'Authorization': f'Bearer {token}'}, timeout=60)
    return A2AAgent(urljoin(base_url, f'../{slug}/'), client_config=ClientConfig(httpx_client=http))


def text(result):
    return ''.join(block['text'] for block in result.message['content'])


async def send(caller):
    agent = agent_of(caller, 'interop')
    result = await agent.invoke_async('hello')
    equal([agent.name, result.stop_reason, text(result)], ['Interop', 'end_turn', 'hello'])


async def stream(caller):
    events = [event async for event in agent_of(caller, 'countdown').stream_async('3')]
    assert len(events) > 4, events
    equal(events[-1]['result'].state, {'a2a_task_state': 'completed'})


async def input_required(caller):
    result = await agent_of(caller, 'trip-planner').invoke_async('Plan a trip')
    equal([result.stop_reason, result.state], ['interrupt', {'a2a_task_state': 'input-required'}])
    assert text(result), result


async def bare_message(caller):
    assert 'Ada' in text(await agent_of(caller, 'greeter').invoke_async('I am Ada'))


async def no_agent(caller):
    try:
        await agent_of(caller, 'nobody').invoke_async('hello')
    except Exception as error:
        assert '404' in str(error), error
    else:
        raise AssertionError('expected an error')


CHECKS = {
    'send': send,
    'stream': stream,
    'input required': input_required,
    'bare message': bare_message,
    'no agent': no_agent,
}


def checks(base_url, token):
    return {'': {name: partial(run, (base_url, token)) for name, run in CHECKS.items()}}
