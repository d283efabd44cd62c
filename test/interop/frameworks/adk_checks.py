"""Google ADK: a `RemoteA2aAgent` in a runner, as its users have it."""

from functools import partial
from urllib.parse import urljoin

import httpx
from google.adk.a2a import _compat
from google.adk.a2a.agent.config import A2aRemoteAgentConfig, RequestInterceptor
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai.types import Blob, Content, Part

NAME = 'Google ADK'


def equal(actual, expected):
    assert actual == expected, f'expected {expected!r}, got {actual!r}'


class Session:
    """A conversation with one agent of the server."""

    def __init__(self, caller, slug, echo=None):
        base_url, token, streaming = caller
        headers = {'Authorization': f'Bearer {token}'}
        http = httpx.AsyncClient(headers=headers, timeout=60)
        config = _compat.make_client_config(httpx_client=http, streaming=streaming)

        async def ask_echo(_, message, parameters):
            if echo and _compat.IS_A2A_V1:
                message.metadata.update({'echo': echo})
            elif echo:
                message.metadata = {'echo': echo}
            return message, parameters

        self.runner = InMemoryRunner(
            agent=RemoteA2aAgent(
                name=slug.replace('-', '_'),
                agent_card=urljoin(base_url, f'../{slug}/.well-known/agent-card.json'),
                httpx_client=http,
                a2a_client_factory=_compat.A2AClientFactory(config),
                config=A2aRemoteAgentConfig(request_interceptors=[RequestInterceptor(before_request=ask_echo)]),
            ),
            app_name='interop',
        )
        self.session = None

    async def send(self, *parts):
        """All events of a turn."""
        if self.session is None:
            self.session = await self.runner.session_service.create_session(app_name='interop', user_id='user')
        message = Content(role='user', parts=list(parts))
        ids = {'user_id': 'user', 'session_id': self.session.id}
        return [event async for event in self.runner.run_async(**ids, new_message=message)]


def texts(events):
    """The texts that the agent has said, without those that are only progress."""
    said = [part for event in events for part in (event.content and event.content.parts) or []]
    return [part.text for part in said if part.text and not part.thought]


def errors(events):
    return [event.error_message for event in events if event.error_message]


async def send(caller):
    events = await Session(caller, 'interop').send(Part(text='hello'))
    equal(errors(events), [])
    equal(texts(events)[-1], 'hello')


async def chunks(caller):
    events = await Session(caller, 'interop', {'chunks': 3}).send(Part(text='ab'))
    equal(errors(events), [])
    assert ''.join(texts(events)).endswith('ababab'), texts(events)


async def input_required(caller):
    session = Session(caller, 'trip-planner')
    asked = await session.send(Part(text='Plan a trip'))
    equal(errors(asked), [])
    task_id = asked[-1].custom_metadata['a2a:task_id']
    for answer in ['Lisbon', '3']:
        events = await session.send(Part(text=answer))
        equal([errors(events), events[-1].custom_metadata['a2a:task_id']], [[], task_id])
    assert 'Lisbon' in ' '.join(texts(events)), texts(events)


async def files(caller):
    blob = Blob(data=b'\x00\x01\x02\xff', mime_type='application/octet-stream', display_name='four.bin')
    events = await Session(caller, 'interop').send(Part(text='a file'), Part(inline_data=blob))
    equal(errors(events), [])
    parts = [part for event in events for part in (event.content and event.content.parts) or []]
    assert any(part.inline_data and part.inline_data.data == blob.data for part in parts), parts


async def bare_message(caller):
    events = await Session(caller, 'greeter').send(Part(text='I am Ada'))
    equal(errors(events), [])
    assert 'Ada' in texts(events)[-1], texts(events)


async def failed_task(caller):
    events = await Session(caller, 'interop', {'fail': 'failed'}).send(Part(text='fail'))
    state = events[-1].custom_metadata['a2a:response']['status']['state']
    assert 'failed' in state.lower(), state


async def no_agent(caller):
    [error] = errors(await Session(caller, 'nobody').send(Part(text='hello')))
    assert '404' in error, error


CHECKS = {
    'send': send,
    'chunks': chunks,
    'input required': input_required,
    'files': files,
    'bare message': bare_message,
    'failed task': failed_task,
    'no agent': no_agent,
}


def checks(base_url, token):
    return {
        f', {mode}': {name: partial(run, (base_url, token, mode == 'streaming')) for name, run in CHECKS.items()}
        for mode in ['streaming', 'blocking']
    }
