import type { Metrics } from '@baton/telemetry';
import type { OnApplicationShutdown } from '@nestjs/common';
import type * as undici from 'undici';
import type { RequestInit, Response } from 'undici';
import { AllowList } from './allow-list.js';
import type { Resolve } from './guarded-connect.js';
import { type BodyBounds, limitedBody } from './limited-body.js';
import { checkOutboundUrl } from './outbound-url.js';
import { OutboundRefused } from './failure-reason.js';
import { nextRequest } from './redirect.js';
import { timeoutSignal } from './timeout-signal.js';

type Fetch = typeof globalThis.fetch;

const MAX_REDIRECTS = 5;
/** Models and agents may think for long before they say anything. */
const ANSWER_MS = 15 * 60_000;
const SILENCE_MS = 5 * 60_000;

/** What one kind of call may cost. */
export interface OutboundLimits extends Partial<BodyBounds> {
  /** From the request to the end of the answer's body, in milliseconds. */
  timeoutMs?: number;
  /** Under which name of `baton_limit_exceeded_total` an answer counts that is too large. */
  limit?: string;
}

/**
 * The way out for every address that a tenant has written: model providers, MCP servers, remote agents. Calls go to
 * public addresses and to what OUTBOUND_ALLOW names, and nowhere else (docs/agents/remote-agents.md). A connection takes
 * 10 s at most; an answer is given up when it has not begun after 15 minutes or is silent for 5. Proxies of the environment are not used.
 */
export class Outbound implements OnApplicationShutdown {
  private readonly allowed: AllowList;
  private opened: Promise<Client> | undefined;

  /**
   * @param allow `Environment.outboundAllow`
   * @param resolve finds the addresses of a host name; unset = as the system does
   */
  constructor(
    allow: readonly string[],
    private readonly metrics?: Metrics,
    private readonly resolve?: Resolve,
  ) {
    this.allowed = new AllowList(allow);
  }

  async onApplicationShutdown(): Promise<void> {
    const client = await this.opened;
    await client?.agent.destroy();
  }

  /** undici is large: a process loads it with its first call. */
  private open(): Promise<Client> {
    this.opened ??= openClient(this.allowed, this.resolve);
    return this.opened;
  }

  /**
   * As the global `fetch`. Rejects with OutboundRefused for a URL that is not http(s), that holds a user name or
   * password, that is not at an allowed address, or that redirects to another origin (or more than 5 times).
   */
  readonly fetch: Fetch = this.fetchWithin({});

  /** The same with limits; it rejects with OutboundRefused, or the body does, when an answer gets too large. */
  fetchWithin(limits: OutboundLimits): Fetch {
    const guarded = (input: Parameters<Fetch>[0], init?: RequestInit) => this.follow(input, init, limits);
    // undici's own types and those of the same code in Node differ in names only.
    return guarded as unknown as Fetch;
  }

  private async follow(
    input: Parameters<Fetch>[0],
    init: RequestInit | undefined,
    limits: OutboundLimits,
  ): Promise<Response> {
    let { url, request } = firstRequest(input, init, limits.timeoutMs);
    for (let redirects = 0; ; redirects++) {
      checkOutboundUrl(url);
      const client = await this.open();
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

/** undici with the one agent that makes all connections. */
interface Client {
  agent: undici.Agent;
  fetch: typeof undici.fetch;
  Response: typeof undici.Response;
}

async function openClient(allowed: AllowList, resolve?: Resolve): Promise<Client> {
  const [{ Agent, Response, fetch }, { guardedConnect }] = await Promise.all([
    import('undici'),
    import('./guarded-connect.js'),
  ]);
  const connect = guardedConnect(allowed, resolve);
  const agent = new Agent({ connect, headersTimeout: ANSWER_MS, bodyTimeout: SILENCE_MS });
  return { agent, fetch, Response };
}

async function call({ agent, fetch }: Client, url: URL, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...request, redirect: 'manual', dispatcher: agent });
  } catch (error) {
    throw refusalIn(error, url) ?? error;
  }
}

/** The request that `fetch(input, init)` means. */
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
  if (!URL.canParse(text)) throw new OutboundRefused('the address to call is not a URL');
  return { url: new URL(text), request };
}

function limited(client: Client, response: Response, { host }: URL, bounds: BodyBounds): Response {
  const { body, headers, status, statusText } = response;
  if (!body) return response;
  const isEventStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false;
  const passedOn = body.pipeThrough(limitedBody(bounds, isEventStream, host));
  return new client.Response(passedOn, { headers, status, statusText });
}

/** undici wraps what went wrong with a connection. */
function refusalIn(error: unknown, { host }: URL): OutboundRefused | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof OutboundRefused) return cause;
    // Ports of other protocols (mail, for example), as the Fetch standard lists them.
    if (cause.message === 'bad port') return new OutboundRefused(`the port of "${host}" is not one for HTTP`);
  }
  return undefined;
}
