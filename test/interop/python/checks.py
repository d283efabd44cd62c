"""What is asked of every client of the Python SDK, whatever its version and binding.

`sdk` is the `Client` of sdk_1_0.py or sdk_0_3.py: it makes the calls, and tells results in the plain words of this file.
"""

import asyncio
import contextlib
import hashlib
import os
import queue
import random
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urljoin

import jwt

# Longer than any check lasts, so that the task is there until it is canceled.
LONG = {'chunks': 100_000, 'delayMs': 100}


def equal(actual, expected):
    assert actual == expected, f'expected {expected!r}, got {actual!r}'


def texts(task):
    return [part['text'] for part in task['parts'] if 'text' in part]


async def refusal(call):
    """The error that a call ends with."""
    try:
        result = await call
    except Exception as error:
        return error
    raise AssertionError(f'expected an error, got {result!r}')


async def collect(stream):
    return [event async for event in stream]


async def begun(sdk):
    """A stream of a long turn, read until its first chunk."""
    stream = sdk.stream([{'text': 'long'}], echo=LONG)
    first = await anext(stream)
    equal(first['kind'], 'task')
    while (await anext(stream))['kind'] == 'status':
        pass
    return first['id'], stream


async def card(sdk):
    card = await sdk.card()
    equal(card.name, 'Interop')
    assert card.capabilities.streaming
    assert 'tells callers with a token more' in (await sdk.extended_card()).description


async def signed_card(sdk):
    await sdk.verified_card()


async def send(sdk):
    task = await sdk.send([{'text': 'hello'}])
    equal([task['state'], texts(task)], ['completed', ['hello']])


async def stream(sdk):
    events = await collect(sdk.stream([{'text': 'hi'}], echo={'chunks': 3}))
    kinds = [event['kind'] for event in events]
    equal(kinds, ['task', 'status', 'artifact', 'artifact', 'artifact', 'status'])
    equal(events[-1]['state'], 'completed')


async def get(sdk):
    sent = await sdk.send([{'text': 'get me'}])
    task = await sdk.get(sent['id'])
    equal([task['id'], task['state'], texts(task)], [sent['id'], 'completed', ['get me']])
    equal(task['history'], ['user'])


async def list_tasks(sdk):
    context_id = str(uuid.uuid4())
    for text in ['a', 'b', 'c']:
        await sdk.send([{'text': text}], context_id=context_id)
    first, token = await sdk.list(context_id, page_size=2)
    second, end = await sdk.list(context_id, page_size=2, page_token=token)
    equal([text for task in [*first, *second] for text in texts(task)], ['c', 'b', 'a'])
    equal(end, '')


async def cancel(sdk):
    task_id, stream = await begun(sdk)
    equal((await sdk.cancel(task_id))['state'], 'canceled')
    equal((await collect(stream))[-1]['state'], 'canceled')


async def subscribe(sdk):
    task_id, stream = await begun(sdk)
    other = sdk.subscribe(task_id)
    first = await anext(other)
    equal([first['kind'], first['id']], ['task', task_id])
    equal((await anext(other))['kind'], 'artifact')
    await sdk.cancel(task_id)
    equal((await collect(other))[-1]['state'], 'canceled')
    await collect(stream)


async def multi_turn(sdk):
    asked = await sdk.send([{'text': 'first'}], echo={'askInput': True})
    equal(asked['state'], 'input-required')
    ids = {'task_id': asked['id'], 'context_id': asked['context_id']}
    answered = await sdk.send([{'text': 'second'}], **ids)
    equal([answered['id'], answered['state'], texts(answered)], [asked['id'], 'completed', ['second']])
    equal(answered['history'], ['user', 'agent', 'user'])


async def files_and_data(sdk):
    parts = [
        {'bytes': b'\x00\x01\x02\xff', 'media_type': 'application/octet-stream', 'filename': 'four.bin'},
        {'url': 'https://example.com/report.pdf', 'media_type': 'application/pdf', 'filename': 'report.pdf'},
        {'data': {'n': 1.5, 'list': ['ä', True, None], 'nested': {'empty': {}}}},
        {'text': 'and text'},
    ]
    task = await sdk.send(parts)
    equal(task['parts'], parts)
    equal((await sdk.get(task['id']))['parts'], parts)


# Each kind of character: controls, those that end lines somewhere, and those outside of the basic plane.
CHARACTERS = ['\0', '\n', '\r', '\x1c', '\x85', '\u2028', '\u2029', '\ufeff', '\ufffe', '"', '\\', 'é', '漢', '😀', '\U0010ffff']


def any_text(draw):
    return ''.join(draw.choice(CHARACTERS) for _ in range(draw.randrange(8)))


def any_value(draw, depth=3):
    scalars = [None, True, False, draw.randrange(-(2**53), 2**53), draw.uniform(-1e300, 1e300), 5e-324, any_text(draw)]
    if depth == 0 or draw.random() < 0.4:
        return draw.choice(scalars)
    if draw.random() < 0.5:
        return [any_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return any_struct(draw, depth)


def any_struct(draw, depth=3):
    return {any_text(draw): any_value(draw, depth - 1) for _ in range(draw.randrange(4))}


def any_part(draw, sdk):
    # Data of 0.3 are objects.
    data = any_value(draw) if sdk.VERSION == '1.0' else any_struct(draw)
    file = {'bytes': draw.randbytes(draw.randrange(9)), 'media_type': 'a/b', 'filename': 'x' + any_text(draw)}
    return draw.choice([{'text': any_text(draw)}, {'data': data}, file])


async def any_values(sdk):
    """Whatever the specification allows comes back as it was sent. The seed makes every run the same."""
    draw = random.Random(1)
    context_id = str(uuid.uuid4())
    sent = [[any_part(draw, sdk) for _ in range(30)] for _ in range(4)]
    for parts in sent:
        task = await sdk.send(parts, context_id=context_id)
        equal(task['parts'], parts)
        equal((await sdk.get(task['id']))['parts'], parts)
        equal((await collect(sdk.stream(parts)))[-1]['state'], 'completed')
    if 'list' not in sdk.WITHOUT:
        listed, _ = await sdk.list(context_id, page_size=10)
        equal([task['parts'] for task in reversed(listed)], sent)


async def old_text(sdk):
    """Earlier releases have stored half of a character."""
    context_id = os.environ.get('BATON_OLD_CONTEXT')
    if context_id is None:
        return
    [task], _ = await sdk.list(context_id, page_size=10)
    equal(texts(task), ['half \ufffd'])
    equal(texts(await sdk.get(task['id'])), ['half \ufffd'])


@contextlib.contextmanager
def receiver():
    """A receiver of push notifications: its URL, and what it gets."""
    received = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            received.put((self.headers, self.rfile.read(int(self.headers['Content-Length']))))
            self.send_response(200)
            self.send_header('Content-Length', '0')
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f'http://127.0.0.1:{server.server_port}/', received
    finally:
        server.shutdown()


async def push(sdk):
    answer = await sdk.http.get(urljoin(sdk.base_url, '/.well-known/jwks.json'))
    keys = {key['kid']: jwt.PyJWK(key) for key in answer.json()['keys']}
    with receiver() as (url, received):
        asked = await sdk.send([{'text': 'first'}], echo={'askInput': True})
        task_id = asked['id']
        config = {'id': 'mine', 'url': url}
        equal(await sdk.set_config(task_id, token='a-token', **config), config)
        equal(await sdk.get_config(task_id, 'mine'), config)
        if sdk.LISTS_CONFIGS:
            equal(await sdk.list_configs(task_id), [config])
        await sdk.send([{'text': 'second'}], task_id=task_id, context_id=asked['context_id'])
        states = ['']
        while states[-1] != 'completed':
            headers, body = await asyncio.to_thread(received.get, True, 60)
            equal([headers['A2A-Version'], headers['X-A2A-Notification-Token']], [sdk.VERSION, 'a-token'])
            token = headers['Baton-Signature']
            key = keys[jwt.get_unverified_header(token)['kid']]
            claims = jwt.decode(token, key, algorithms=['ES256'], audience=url.rstrip('/'), subject=headers['Webhook-Id'])
            equal(claims['request_body_sha256'], hashlib.sha256(body).hexdigest())
            state = sdk.pushed(body).get('state', states[-1])
            states += [state] if state != states[-1] else []
        equal(states[1:], ['submitted', 'working', 'completed'])
        if sdk.LISTS_CONFIGS:
            await sdk.delete_config(task_id, 'mine')
            equal(await sdk.list_configs(task_id), [])


async def unknown_task(sdk):
    equal(sdk.shown(await refusal(sdk.get(str(uuid.uuid4())))), sdk.SHOWN['TASK_NOT_FOUND'])
    stream = sdk.subscribe(str(uuid.uuid4()))
    equal(sdk.shown(await refusal(anext(stream))), sdk.SHOWN_OF_STREAMS['TASK_NOT_FOUND'])


async def not_cancelable(sdk):
    task = await sdk.send([{'text': 'done'}])
    equal(sdk.shown(await refusal(sdk.cancel(task['id']))), sdk.SHOWN['TASK_NOT_CANCELABLE'])


async def bad_request(sdk):
    equal(sdk.shown(await refusal(sdk.send([]))), sdk.SHOWN['INVALID_PARAMS'])
    equal(sdk.shown(await refusal(anext(sdk.stream([])))), sdk.SHOWN_OF_STREAMS['INVALID_PARAMS'])


CHECKS = {
    'card': card,
    'signed card': signed_card,
    'send': send,
    'stream': stream,
    'get': get,
    'list': list_tasks,
    'cancel': cancel,
    'subscribe': subscribe,
    'multi-turn': multi_turn,
    'files and data': files_and_data,
    'any values': any_values,
    'old text': old_text,
    'push': push,
    'unknown task': unknown_task,
    'task that cannot be canceled': not_cancelable,
    'bad request': bad_request,
}
