"""a2a-sdk 1.x: a client of A2A 1.0 over one binding."""

import json
import uuid
from urllib.parse import urljoin

import grpc
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.signing import create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from jwt import PyJWK

BINDINGS = {'JSON-RPC': 'JSONRPC', 'HTTP+JSON': 'HTTP+JSON', 'gRPC': 'GRPC'}
WITHOUT = []


def to_part(part):
    if 'data' in part:
        return Part(data=ParseDict(part['data'], Value()))
    known = {'text': 'text', 'bytes': 'raw', 'url': 'url', 'media_type': 'media_type', 'filename': 'filename'}
    return Part(**{known[key]: value for key, value in part.items()})


def from_part(part):
    kind = part.WhichOneof('content')
    if kind == 'data':
        return {'data': MessageToDict(part.data)}
    described = {'media_type': part.media_type, 'filename': part.filename}
    content = {'bytes' if kind == 'raw' else kind: getattr(part, kind)}
    return {**content, **{key: value for key, value in described.items() if value}}


def state(status):
    return TaskState.Name(status.state).removeprefix('TASK_STATE_').lower().replace('_', '-')


def from_task(task):
    return {
        'id': task.id,
        'context_id': task.context_id,
        'state': state(task.status),
        'parts': [from_part(part) for artifact in task.artifacts for part in artifact.parts],
        'history': [Role.Name(message.role).removeprefix('ROLE_').lower() for message in task.history],
    }


def from_event(event):
    match event.WhichOneof('payload'):
        case 'task':
            return {'kind': 'task', **from_task(event.task)}
        case 'status_update':
            return {'kind': 'status', 'state': state(event.status_update.status)}
        case other:
            return {'kind': other.removesuffix('_update')}


async def from_stream(stream):
    async for event in stream:
        yield from_event(event)


def from_config(config):
    return {'id': config.id, 'url': config.url}


def to_request(parts, echo=None, task_id='', context_id=''):
    message = Message(
        message_id=str(uuid.uuid4()),
        role=Role.ROLE_USER,
        parts=[to_part(part) for part in parts],
        task_id=task_id,
        context_id=context_id,
    )
    if echo:
        message.metadata.update({'echo': echo})
    return SendMessageRequest(message=message)


class Client:
    VERSION = '1.0'
    WITHOUT = WITHOUT
    LISTS_CONFIGS = True
    # The SDK has an error class for each reason.
    SHOWN = {
        'TASK_NOT_FOUND': 'TaskNotFoundError',
        'TASK_NOT_CANCELABLE': 'TaskNotCancelableError',
        'INVALID_PARAMS': 'InvalidParamsError',
    }
    SHOWN_OF_STREAMS = SHOWN

    @classmethod
    async def connect(cls, binding, base_url, http):
        """Connects as users do: from the card of the agent."""
        self = cls()
        self.base_url, self.http = base_url, http
        self.resolver = A2ACardResolver(http, base_url)
        card = await self.resolver.get_agent_card()
        bindings = [BINDINGS[binding]]
        configs = [
            ClientConfig(
                streaming=streaming,
                httpx_client=http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=bindings,
            )
            for streaming in (False, True)
        ]
        self.blocking, self.streaming = [ClientFactory(config).create(card) for config in configs]
        # Headers, and over gRPC metadata.
        self.context = ClientCallContext(service_parameters={'Authorization': http.headers['Authorization']})
        return self

    async def card(self):
        return await self.resolver.get_agent_card()

    async def extended_card(self):
        return await self.blocking.get_extended_agent_card(GetExtendedAgentCardRequest(), context=self.context)

    async def verified_card(self):
        """The card as the SDK fetches it, verified with the published keys by the SDK."""
        url = urljoin(self.base_url, '/.well-known/jwks.json')
        keys = {key['kid']: PyJWK(key) for key in (await self.http.get(url)).json()['keys']}

        def key_of(kid, jku):
            assert jku == url, jku
            return keys[kid]

        verifier = create_signature_verifier(key_of, ['ES256'])
        return await self.resolver.get_agent_card(signature_verifier=verifier)

    async def send(self, parts, **options):
        stream = self.blocking.send_message(to_request(parts, **options), context=self.context)
        [event] = [event async for event in stream]
        return from_task(event.task)

    def stream(self, parts, **options):
        return from_stream(self.streaming.send_message(to_request(parts, **options), context=self.context))

    async def get(self, task_id):
        return from_task(await self.blocking.get_task(GetTaskRequest(id=task_id), context=self.context))

    async def list(self, context_id, page_size, page_token=''):
        query = ListTasksRequest(
            context_id=context_id, page_size=page_size, page_token=page_token, include_artifacts=True
        )
        answer = await self.blocking.list_tasks(query, context=self.context)
        return [from_task(task) for task in answer.tasks], answer.next_page_token

    async def cancel(self, task_id):
        return from_task(await self.blocking.cancel_task(CancelTaskRequest(id=task_id), context=self.context))

    def subscribe(self, task_id):
        return from_stream(self.streaming.subscribe(SubscribeToTaskRequest(id=task_id), context=self.context))

    async def set_config(self, task_id, **config):
        config = TaskPushNotificationConfig(task_id=task_id, **config)
        return from_config(await self.blocking.create_task_push_notification_config(config, context=self.context))

    async def get_config(self, task_id, config_id):
        query = GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        return from_config(await self.blocking.get_task_push_notification_config(query, context=self.context))

    async def list_configs(self, task_id):
        query = ListTaskPushNotificationConfigsRequest(task_id=task_id)
        answer = await self.blocking.list_task_push_notification_configs(query, context=self.context)
        return [from_config(config) for config in answer.configs]

    async def delete_config(self, task_id, config_id):
        query = DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await self.blocking.delete_task_push_notification_config(query, context=self.context)

    def pushed(self, body):
        return from_event(ParseDict(json.loads(body), StreamResponse()))

    def shown(self, error):
        return type(error).__name__ if type(error).__name__ in self.SHOWN.values() else repr(error)
