import {
  assertWritable,
  type CallContext,
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  hasPush,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  ProtocolError,
  type TaskPushNotificationConfig,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  LimitReachedError,
  type PushConfig,
  PushConfigStore,
  PushConfigTakenError,
  type PushProtocol,
  type TurnPush,
} from '@baton/database';
import { explainLimit, LimitsService, PushSecrets, SecretError } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { actorOf } from '../core/actor.js';
import { ReceiverCheck } from '../push/receiver-check.js';
import { TaskFinder } from './task-finder.js';

/** The default of A2A 1.0 for tasks (§3.1.4). */
const DEFAULT_PAGE_SIZE = 50;
/** base64url of an id of 256 characters. */
const MAX_PAGE_TOKEN_LENGTH = 1500;

/** A config that a send asks for. The task may not exist yet. */
export interface PreparedPush {
  /** @throws ProtocolError `not-configured` if it has secrets, which cannot be stored here */
  forTask(taskId: string): TurnPush;
}

/** The receivers of the events of a task (A2A 1.0 §3.1.7 to §3.1.10). No answer has the secrets of a config. */
@Injectable()
export class PushOperations {
  constructor(
    private readonly configs: PushConfigStore,
    private readonly finder: TaskFinder,
    private readonly receivers: ReceiverCheck,
    private readonly secrets: PushSecrets,
    private readonly limits: LimitsService,
    private readonly environment: Environment,
  ) {}

  /** A config that is set again under its id continues with the next event, at its new receiver. */
  async create(call: CallContext, config: TaskPushNotificationConfig): Promise<TaskPushNotificationConfig> {
    const { tenantId } = call;
    const taskId = await this.taskOf(call, config.taskId);
    const { config: at } = call.rules.pushFields;
    const prepared = await this.prepareAt(call, config, at && `${at}.`);
    const push = prepared.forTask(taskId);
    const isStored = await this.configs
      .put({ tenantId, taskId }, push, actorOf(call))
      .catch((error: unknown) => explainPush(error, at && `${at}.`));
    if (!isStored) throw await this.finder.notFound(call, config.taskId, taskId);
    return withoutSecrets(config.taskId, push.config);
  }

  /** Without an id: the config that the task had first, as 0.3 has it. */
  async get(
    call: CallContext,
    { taskId: named, id }: GetTaskPushNotificationConfigRequest,
  ): Promise<TaskPushNotificationConfig> {
    const taskId = await this.taskOf(call, named);
    const { tenantId } = call;
    const config =
      (id === '' ? await this.configs.find({ tenantId, taskId, id: taskId }) : undefined) ??
      (await this.configs.find({ tenantId, taskId, id }));
    if (config) return withoutSecrets(named, config);
    const which = id === '' ? '' : ` "${id}"`;
    throw new ProtocolError('task-not-found', `Push notification config${which} not found: task ${named}`, {
      metadata: { taskId: named, ...(id !== '' && { pushNotificationConfigId: id }) },
    });
  }

  async list(
    call: CallContext,
    request: ListTaskPushNotificationConfigsRequest,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    const after = decodePosition(request.pageToken);
    const taskId = await this.taskOf(call, request.taskId);
    const limit = request.pageSize || DEFAULT_PAGE_SIZE;
    const found = await this.configs.list(call.tenantId, taskId, after, limit + 1);
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      configs: page.map((config) => withoutSecrets(request.taskId, config)),
      nextPageToken: last ? Buffer.from(last.id).toString('base64url') : '',
    };
  }

  /** A config that does not exist is not an error. */
  async delete(
    call: CallContext,
    { taskId: named, id }: DeleteTaskPushNotificationConfigRequest,
  ): Promise<Record<string, never>> {
    const taskId = await this.taskOf(call, named);
    const { tenantId } = call;
    const isThere = await this.configs.delete({ tenantId, taskId, id }, actorOf(call));
    if (!isThere) throw await this.finder.notFound(call, named, taskId);
    return {};
  }

  /** Checks the config of a send. @throws ProtocolError that names the field */
  async prepare(call: CallContext, config: TaskPushNotificationConfig): Promise<PreparedPush> {
    this.assertPush(call);
    return this.prepareAt(call, config, `${call.rules.pushFields.inSend}.`);
  }

  private async prepareAt(
    call: CallContext,
    config: TaskPushNotificationConfig,
    at: string,
  ): Promise<PreparedPush> {
    const { tenantId, version } = call;
    await this.receivers.checkConfig(call, config, at, call.rules.pushFields);
    const { pushConfigs: max } = await this.limits.get(tenantId);
    const protocol: PushProtocol = version === '1.0' ? '1.0' : '0.3';
    const authScheme = config.authentication?.scheme || null;
    const { href: url } = new URL(config.url);
    const token = config.token || undefined;
    const credentials = config.authentication?.credentials || undefined;
    const ownId = config.id || (protocol === '1.0' ? uuid() : '');
    return {
      forTask: (taskId) => {
        // As in the SDKs of 0.3: setting a config without an id again replaces it.
        const id = ownId || taskId;
        try {
          const sealed = this.secrets.seal({ tenantId, taskId, configId: id }, { token, credentials });
          return { config: { id, url, protocol, authScheme, sealed }, max };
        } catch (error) {
          if (error instanceof SecretError) throw withoutMasterKey(at);
          throw error;
        }
      },
    };
  }

  /**
   * The task, if the caller may act on it. A config sends its events to a URL, so the right to read the task is not enough.
   * @throws ProtocolError if there is no push, or no such task for the caller
   */
  private async taskOf(call: CallContext, named: string): Promise<string> {
    this.assertPush(call);
    const { task, owner } = await this.finder.find(call, named, { historyLength: 0, artifacts: false });
    assertWritable(call, owner);
    return task.id;
  }

  private assertPush({ agent, rules, principal }: CallContext): void {
    if (rules.push === 'refused' || !hasPush(agent, this.environment.pushNotifications)) {
      throw new ProtocolError(
        'push-not-supported',
        'This agent does not support push notifications: follow the task with a stream or read it with GetTask',
      );
    }
    // Other operations have refused guests before. A send of a guest may ask for push, too.
    if (principal.kind === 'guest')
      throw new ProtocolError('unauthenticated', 'a bearer token is required for push notifications');
  }
}

/** A config as it is shown: its token and its credentials are secrets. */
const withoutSecrets = (taskId: string, { id, url, authScheme }: PushConfig): TaskPushNotificationConfig => ({
  tenant: '',
  taskId,
  id,
  url,
  token: '',
  authentication: authScheme === null ? undefined : { scheme: authScheme, credentials: '' },
});

/** For the error of a write. @param at where the config is in the params, with a full stop at its end */
export function explainPush(error: unknown, at: string): never {
  if (error instanceof PushConfigTakenError)
    throw ProtocolError.invalidParams(`${at}id`, 'is taken by a webhook of the tenant: choose another id');
  if (error instanceof LimitReachedError) explainLimit(error);
  throw error;
}

const withoutMasterKey = (at: string): ProtocolError =>
  new ProtocolError(
    'not-configured',
    `${at}token and credentials cannot be stored: the operator of this installation must set BATON_MASTER_KEY (or _FILE, ` +
      '_COMMAND) for every process. A config without them is possible: verify the signature of what you receive',
  );

function decodePosition(token: string): string {
  if (token === '') return '';
  const id = Buffer.from(token, 'base64url').toString();
  const isOurs =
    token.length <= MAX_PAGE_TOKEN_LENGTH &&
    !id.includes('\0') &&
    Buffer.from(id).toString('base64url') === token;
  if (isOurs) return id;
  throw ProtocolError.invalidParams(
    'pageToken',
    'is not a token this server has issued: use nextPageToken of the page before, or leave it out',
  );
}
