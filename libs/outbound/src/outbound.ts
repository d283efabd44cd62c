import { isEventStream } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger, Metrics } from '@baton/telemetry';
import type { OnApplicationShutdown } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type * as undici from 'undici';
import type { RequestInit, Response } from 'undici';
import { AllowList } from './allow-list.js';
import { AnswerTurns } from './answer-turns.js';
import { type EgressLists, NO_EGRESS_LISTS, TenantEgress } from './tenant-egress.js';
import { EgressList } from './egress-list.js';
import { GuardedAnswer, type Handler } from './guarded-answer.js';
import type { ConnectRules } from './guarded-connect.js';
import { type BodyBounds, limitedBody } from './limited-body.js';
import { checkOutboundUrl } from './outbound-url.js';
import { OutboundRefused } from './outbound-refused.js';
import { NameResolver, type Resolve } from './names/name-resolver.js';
import { nextRequest } from './redirect.js';
import { timeoutSignal } from './timeout-signal.js';

export type Fetch = typeof globalThis.fetch;

/** Hosts of files redirect two or three times. */
const MAX_REDIRECTS = 5;
/** Maximum time until an answer starts. A model may think for minutes. */
const ANSWER_MS = 15 * 60_000;
/** Maximum time between two parts of an answer. */
const SILENCE_MS = 5 * 60_000;

/** Limits of one kind of call. */
export interface OutboundLimits extends Partial<BodyBounds> {
  /** Maximum time from the request to the end of the answer's body, in milliseconds. */
  timeoutMs?: number;
  /** The label of `baton_limit_exceeded_total` for an answer that is too large. */
  limit?: string;
}

/** Where calls may lead, and by which way: these settings of the environment. */
export type OutboundSettings = Pick<Environment, 'outboundAllow'> &
  Partial<Pick<Environment, 'outboundDeny' | 'outboundDns' | 'outboundProxy' | 'outboundProxyResolves'>>;

/** Calls to addresses that a tenant wrote. */
export interface OutboundCalls {
  /**
   * Works like the global `fetch`. Rejects with OutboundRefused for a URL that is not http(s), that has a user name or
   * password, that is not at an allowed address, or that redirects to another origin or more than 5 times.
   */
  readonly fetch: Fetch;
  /** A `fetch` with limits. It rejects with OutboundRefused if an answer is too large, or its body does. */
  fetchWithin(limits: OutboundLimits): Fetch;
}

/** Tenants whose connections are kept. An evicted client ends its connections when they are idle. */
const MAX_CLIENTS = 1_000;
/** Stands for a tenant in the calls of the platform itself. */
const PLATFORM = '';

/**
 * The guard for all calls to addresses that a tenant wrote: model providers, MCP servers, remote agents. It allows
 * public addresses and those of OUTBOUND_ALLOW, and no others (docs/agents/remote-agents.md), and of these what the lists
 * of the tenant leave (docs/operating/egress.md). A lookup of a name may take 5 s, connecting 10 s more. An answer must start
 * within 15 minutes and may pause for 5 minutes. There is a proxy only if OUTBOUND_PROXY names one.
 */
export class Outbound implements OutboundCalls, OnApplicationShutdown {
  private readonly operator: Pick<ConnectRules, 'allowed' | 'denied'>;
  private readonly names: Pick<NameResolver, 'forTenant'>;
  /** By tenant and its lists: a connection or lookup of one tenant serves and delays no other one. */
  private readonly clients = new LRUCache<string, Promise<Client>>({ max: MAX_CLIENTS });

  /**
   * @param resolve finds the addresses of a host name, for all tenants. Default: a NameResolver
   * @param log gets the reasons of refusals that must not be shown to a tenant
   */
  constructor(
    private readonly settings: OutboundSettings,
    private readonly metrics?: Metrics,
    resolve?: Resolve,
    private readonly log?: Logger,
  ) {
    const onExcess = (): void => metrics?.limitExceeded.inc({ limit: 'nameLookups' });
    this.names = resolve
      ? { forTenant: () => resolve }
      : new NameResolver({ servers: settings.outboundDns ?? [], onExcess });
    this.operator = {
      allowed: new AllowList(settings.outboundAllow),
      denied: new EgressList(settings.outboundDeny ?? []),
    };
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.clients.values()].map(async (client) => (await client).agent.destroy()));
  }

  /**
   * The calls of one tenant. They have connections and lookups of their own.
   * @param tenantId the tenant, or another name for a caller with a share of its own
   * @param lists asked before each request, so that a change counts at once
   */
  forTenant(tenantId: string, lists: () => Promise<EgressLists>): OutboundCalls {
    const fetchWithin = (limits: OutboundLimits): Fetch => this.fetchOf(limits, tenantId, lists);
    return { fetch: fetchWithin({}), fetchWithin };
  }

  /**
   * Whether a tenant may call a URL, before it is stored. A call checks it again. Resolves also when the name could not be
   * looked up for the moment.
   * @throws OutboundRefused with the reason for the tenant, as its calls would be refused
   */
  async assertReachable(url: URL, tenantId: string, lists: EgressLists): Promise<void> {
    checkOutboundUrl(url);
    const { assertReachable } = await import('./guarded-connect.js');
    try {
      await assertReachable(this.rulesFor(tenantId, lists), url);
    } catch (error) {
      if (error instanceof OutboundRefused) throw error;
      this.log?.info('a name could not be looked up', { host: url.host, err: error });
    }
  }

  /** A call of no tenant: only what the operator has set holds. */
  readonly fetch: Fetch = this.fetchWithin({});

  /** `fetch` of no tenant, with limits. */
  fetchWithin(limits: OutboundLimits): Fetch {
    return this.fetchOf(limits, PLATFORM, () => Promise.resolve(NO_EGRESS_LISTS));
  }

  private fetchOf(limits: OutboundLimits, tenantId: string, lists: () => Promise<EgressLists>): Fetch {
    const open = async (): Promise<Client> => this.open(tenantId, await lists());
    const guarded = async (input: Parameters<Fetch>[0], init?: RequestInit) =>
      this.follow(input, init, limits, open);
    // The types of undici and of Node's built-in copy differ only in names.
    return guarded as unknown as Fetch;
  }

  /** Loads undici with the first call, because it is large. */
  private open(tenantId: string, lists: EgressLists): Promise<Client> {
    const key = JSON.stringify([tenantId, lists.allow, lists.deny]);
    let client = this.clients.get(key);
    if (!client) {
      const onRefused = (limit: string): void => this.metrics?.limitExceeded.inc({ limit });
      client = openClient(this.rulesFor(tenantId, lists), this.settings.outboundProxy, onRefused);
      this.clients.set(key, client);
    }
    return client;
  }

  private rulesFor(tenantId: string, lists: EgressLists): ConnectRules {
    const { outboundProxyResolves: proxyResolves = false } = this.settings;
    const onRefused = (host: string, reason: string): void =>
      this.log?.info('outbound call refused', { host, reason });
    return {
      ...this.operator,
      egress: new TenantEgress(lists),
      resolve: this.names.forTenant(tenantId),
      proxyResolves,
      onRefused,
    };
  }

  private async follow(
    input: Parameters<Fetch>[0],
    init: RequestInit | undefined,
    limits: OutboundLimits,
    open: () => Promise<Client>,
  ): Promise<Response> {
    let { url, request } = firstRequest(input, init, limits.timeoutMs);
    for (let redirects = 0; ; redirects++) {
      checkOutboundUrl(url);
      const client = await open();
      const response = await call(client, url, request);
      const next = request.redirect === 'manual' ? undefined : nextRequest(url, request, response);
      const { maxBytes, limit } = limits;
      const onExcess = (): void => this.metrics?.limitExceeded.inc({ limit: limit ?? 'outboundAnswer' });
      if (!next) {
        if (maxBytes === undefined) return response;
        return limited(client, response, url, { ...limits, maxBytes, onExcess });
      }
      await response.body?.cancel();
      if (request.redirect === 'error') throw new OutboundRefused(`"${url.host}" redirects`);
      if (redirects === MAX_REDIRECTS) throw new OutboundRefused(`"${url.host}" redirects too often`);
      ({ url, request } = next);
    }
  }
}

/** undici and the agent that makes all connections. */
interface Client {
  agent: undici.Agent;
  fetch: typeof undici.fetch;
  Headers: typeof undici.Headers;
  Response: typeof undici.Response;
}

async function openClient(
  rules: ConnectRules,
  proxyUrl: string | undefined,
  onRefused: (limit: string) => void,
): Promise<Client> {
  const [{ Agent, Headers, Response, fetch }, { guardedConnect }, { Proxy }] = await Promise.all([
    import('undici'),
    import('./guarded-connect.js'),
    import('./proxy.js'),
  ]);
  const proxy = proxyUrl === undefined ? undefined : new Proxy(proxyUrl);
  const connect = guardedConnect({ ...rules, proxy });
  const turns = new AnswerTurns();
  const agent = new (class extends Agent {
    override dispatch(options: undici.Agent.DispatchOptions, handler: undici.Dispatcher.DispatchHandler) {
      const { host } = new URL(options.origin ?? '');
      return super.dispatch(options, new GuardedAnswer(handler as Handler, host, turns, onRefused));
    }
  })({ connect, headersTimeout: ANSWER_MS, bodyTimeout: SILENCE_MS });
  return { agent, fetch, Headers, Response };
}

async function call({ agent, fetch, Headers }: Client, url: URL, request: RequestInit): Promise<Response> {
  const headers = new Headers(request.headers);
  // GuardedAnswer refuses others.
  headers.set('accept-encoding', 'identity');
  try {
    return await fetch(url, { ...request, headers, redirect: 'manual', dispatcher: agent });
  } catch (error) {
    throw refusalIn(error, url) ?? error;
  }
}

/** The request of `fetch(input, init)`. */
function firstRequest(input: Parameters<Fetch>[0], init: RequestInit = {}, timeoutMs: number | undefined) {
  const given = typeof input === 'object' && 'url' in input ? input : undefined;
  const { method, headers, body, signal, redirect } = given ?? {};
  const ofInput = given && { method, headers, body, signal, redirect, ...(body && { duplex: 'half' }) };
  const request = { ...ofInput, ...init } as RequestInit;
  if (timeoutMs !== undefined) {
    const signals = [timeoutSignal(timeoutMs), ...(request.signal ? [request.signal] : [])];
    request.signal = AbortSignal.any(signals);
  }
  const text = typeof input === 'string' ? input : (given?.url ?? (input as URL).href);
  const url = URL.parse(text);
  if (url === null) throw new OutboundRefused('the address to call is not a URL');
  return { url, request };
}

function limited(client: Client, response: Response, { host }: URL, bounds: BodyBounds): Response {
  const { body, headers, status, statusText } = response;
  if (!body) return response;
  const isStream = isEventStream(headers.get('content-type'));
  const passedOn = body.pipeThrough(limitedBody(bounds, isStream, host));
  return new client.Response(passedOn, { headers, status, statusText });
}

/** Finds a refusal in the causes of an error, because undici wraps connection errors. */
function refusalIn(error: unknown, { host }: URL): OutboundRefused | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof OutboundRefused) return cause;
    // The Fetch standard blocks ports of other protocols, such as mail.
    if (cause.message === 'bad port') return new OutboundRefused(`the port of "${host}" is not one for HTTP`);
  }
  return undefined;
}
