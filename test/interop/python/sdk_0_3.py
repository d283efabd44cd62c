"""The last 0.3 of a2a-sdk: a client of A2A 0.3 over one binding."""

import base64
import uuid

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

BINDINGS = {'JSON-RPC': 'JSONRPC', 'HTTP+JSON': 'HTTP+JSON'}
# 0.3 cannot list tasks, and its cards are not signed.
WITHOUT = ['list', 'signed card', 'old text']


def to_part(part):
    if 'text' in part:
        return Part(root=TextPart(text=part['text']))
    if 'data' in part:
        return Part(root=DataPart(data=part['data']))
    described = {'mime_type': part['media_type'], 'name': part['filename']}
    if 'url' in part:
        return Part(root=FilePart(file=FileWithUri(uri=part['url'], **described)))
    encoded = base64.b64encode(part['bytes']).decode()
    return Part(root=FilePart(file=FileWithBytes(bytes=encoded, **described)))


def from_part(part):
    part = part.root
    if part.kind == 'text':
        return {'text': part.text}
    if part.kind == 'data':
        return {'data': part.data}
    content = {'url': part.file.uri} if hasattr(part.file, 'uri') else {'bytes': base64.b64decode(part.file.bytes)}
    return {**content, 'media_type': part.file.mime_type, 'filename': part.file.name}


def from_task(task):
    return {
        'id': task.id,
        'context_id': task.context_id,
        'state': task.status.state.value,
        'parts': [from_part(part) for artifact in task.artifacts or [] for part in artifact.parts],
        'history': [message.role.value for message in task.history or []],
    }


async def from_stream(stream):
    async for task, update in stream:
        if update is None:
            yield {'kind': 'task', **from_task(task)}
        elif update.kind == 'status-update':
            yield {'kind': 'status', 'state': update.status.state.value}
        else:
            yield {'kind': update.kind.removesuffix('-update')}


def to_message(parts, echo=None, task_id=None, context_id=None):
    return Message(
        message_id=str(uuid.uuid4()),
        role=Role.user,
        parts=[to_part(part) for part in parts],
        task_id=task_id,
        context_id=context_id,
        metadata={'echo': echo} if echo else None,
    )


def from_config(config):
    return {'id': config.push_notification_config.id, 'url': config.push_notification_config.url}


class Client:
    WITHOUT = WITHOUT
    VERSION = '0.3'
    # Its client cannot list and delete them.
    LISTS_CONFIGS = False

    @classmethod
    async def connect(cls, binding, base_url, http):
        """Connects as users do: from the card of the agent."""
        self = cls()
        self.base_url, self.http = base_url, http
        self.resolver = A2ACardResolver(http, base_url)
        card = await self.resolver.get_agent_card()
        transports = [BINDINGS[binding]]
        configs = [
            ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_transports=transports,
                use_client_preference=True,
            )
            for streaming in (False, True)
        ]
        self.blocking, self.streaming = [ClientFactory(config).create(card) for config in configs]
        # Over JSON-RPC it tells the code of an error, over HTTP+JSON the status: for a stream always 400.
        codes = {'TASK_NOT_FOUND': -32001, 'TASK_NOT_CANCELABLE': -32002, 'INVALID_PARAMS': -32602}
        statuses = {'TASK_NOT_FOUND': 404, 'TASK_NOT_CANCELABLE': 400, 'INVALID_PARAMS': 400}
        self.SHOWN = codes if binding == 'JSON-RPC' else statuses
        self.SHOWN_OF_STREAMS = codes if binding == 'JSON-RPC' else dict.fromkeys(statuses, 400)
        return self

    async def card(self):
        return await self.resolver.get_agent_card()

    async def extended_card(self):
        return await self.blocking.get_card()

    async def send(self, parts, **options):
        [(task, _)] = [event async for event in self.blocking.send_message(to_message(parts, **options))]
        return from_task(task)

    def stream(self, parts, **options):
        return from_stream(self.streaming.send_message(to_message(parts, **options)))

    async def get(self, task_id):
        return from_task(await self.blocking.get_task(TaskQueryParams(id=task_id)))

    async def cancel(self, task_id):
        return from_task(await self.blocking.cancel_task(TaskIdParams(id=task_id)))

    def subscribe(self, task_id):
        return from_stream(self.streaming.resubscribe(TaskIdParams(id=task_id)))

    async def set_config(self, task_id, **config):
        config = PushNotificationConfig(**config)
        params = TaskPushNotificationConfig(task_id=task_id, push_notification_config=config)
        return from_config(await self.blocking.set_task_callback(params))

    async def get_config(self, task_id, config_id):
        params = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id=config_id)
        return from_config(await self.blocking.get_task_callback(params))

    def pushed(self, body):
        return from_task(Task.model_validate_json(body))

    def shown(self, error):
        if hasattr(error, 'status_code'):
            return error.status_code
        return error.error.code if hasattr(error, 'error') else repr(error)
