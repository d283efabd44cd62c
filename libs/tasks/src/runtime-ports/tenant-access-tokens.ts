import {
  type AccessTokenRequest,
  AccessTokens,
  type SignedInCall,
  type SignInOffer,
  type TokenHolder,
  type WiderAccess,
} from '@baton/agents';
import { isOfCaller, oauthResource } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type OAuthConnectionKey, retryTransient } from '@baton/database';
import { OAuthConnections, OAuthSignIns, signInUrl } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';

/** How long a run waits for Postgres to give it a token. */
const READ_TOKEN_MS = 60_000;

/** The sign-ins of tenants and their callers, for runs. An outage of Postgres does not fail a task that needs one. */
@Injectable()
export class TenantAccessTokens extends AccessTokens {
  constructor(
    private readonly connections: OAuthConnections,
    private readonly signIns: OAuthSignIns,
    private readonly environment: Environment,
  ) {
    super();
  }

  override async get(
    holder: TokenHolder,
    request: AccessTokenRequest,
    refused?: string,
  ): Promise<string | undefined> {
    const key = keyOf(holder, request);
    return key && whileAway(() => this.connections.token(key, refused));
  }

  override async noteCall(
    holder: TokenHolder,
    request: AccessTokenRequest,
    { kind, name, ...of }: SignedInCall,
  ): Promise<boolean> {
    const key = keyOf(holder, request);
    const { task } = holder;
    if (!key || !task) return false;
    const { agent, id, owner: caller } = task;
    const call = { id: uuid(), target: { kind, name }, agent, detail: { task: id, caller, ...of } };
    // With its id a record that was written before an answer was lost is not written twice.
    return whileAway(() => this.connections.noteCall(key, call));
  }

  override async refuse(holder: TokenHolder, request: AccessTokenRequest, refused: string): Promise<void> {
    const key = keyOf(holder, request);
    if (key) await whileAway(() => this.connections.refuse(key, refused));
  }

  override async wider(
    holder: TokenHolder,
    request: AccessTokenRequest,
    refused: string,
    asked: readonly string[],
  ): Promise<WiderAccess | undefined> {
    const key = keyOf(holder, request);
    return key && whileAway(() => this.connections.wider(key, refused, asked));
  }

  override async offer(
    { tenantId, task }: TokenHolder,
    wanted: AccessTokenRequest | { childTaskId: string },
  ): Promise<SignInOffer | undefined> {
    const caller = callerOf(task);
    if (!task || caller === undefined) return undefined;
    const waiting = { tenantId, caller, taskId: task.id, agent: task.agent };
    const offer = await whileAway(() => this.signIns.beginForTask(waiting, wanted));
    return offer && { link: signInUrl(this.environment.publicUrl, offer.ticket), forMs: offer.forMs };
  }
}

const whileAway = <T>(work: () => Promise<T>): Promise<T> =>
  retryTransient(work, { signal: AbortSignal.timeout(READ_TOKEN_MS) });

/** The caller who may sign in. A guest has only an address and a secret of a browser. */
function callerOf(task: TokenHolder['task']): string | undefined {
  const owner = task?.owner ?? undefined;
  return owner?.startsWith('guest:') ? undefined : owner;
}

/** Undefined: there is no caller who could be signed in. */
function keyOf(
  { tenantId, task }: TokenHolder,
  { url, settings }: AccessTokenRequest,
): OAuthConnectionKey | undefined {
  const resource = oauthResource(url);
  if (!isOfCaller(settings)) return { tenantId, resource, caller: null };
  const caller = callerOf(task);
  return caller === undefined ? undefined : { tenantId, resource, caller };
}
