import { charsetOf, EnvelopeError, essenceOf, ProtocolError, parseJsonBody } from '@baton/a2a';
import { Environment, NO_LIMITS } from '@baton/config';
import { callerOf, LimitsService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { BodyLease } from './body-lease.js';
import { BodyMemoryPool } from './body-memory-pool.js';
import { Chunks } from './chunks.js';
import { fineBodies } from './fine-bodies.js';
import { holderOf } from './holder-of.js';
import { LoopTurns, SMALL_WORK_BYTES } from './loop-turns.js';
import { isFine } from './paced-request.js';
import { assertPlainText } from './plain-text.js';
import { CallerLeft } from './caller-left.js';
import { UnstoredBodies } from './unstored-bodies.js';

/** Media types of JSON-RPC requests. */
export const RPC_TYPES: readonly string[] = ['application/json', 'application/a2a+json'];
const CHARSETS: ReadonlySet<string> = new Set(['utf-8', 'utf8', 'us-ascii']);

/**
 * Reads bodies instead of Fastify. Fastify's limit is the same for all callers of a route, and it reads before the
 * guards. Here the token is checked first, and a tenant may have its own limit.
 */
@Injectable()
export class BodyReader {
  constructor(
    private readonly limits: LimitsService,
    private readonly environment: Environment,
    private readonly memory: BodyMemoryPool,
    private readonly turns: LoopTurns,
    private readonly unstored: UnstoredBodies,
  ) {}

  /**
   * The text of a body that must be JSON, within a limit of the installation and that of the caller's tenant. `release` must follow,
   * also if it throws.
   * @param size which limit of the installation applies; `operator`: the limit of small bodies, and no limit of a tenant
   * @param mediaTypes the accepted media types
   * @throws ProtocolError `media-type`, `too-large`, `request-timeout`, `overloaded` if there is no memory for it, or `parse`
   *   if it is not UTF-8
   * @throws CallerLeft if the connection breaks before the end
   */
  async text(
    request: FastifyRequest,
    size: 'standard' | 'small' | 'operator',
    mediaTypes: readonly string[] = RPC_TYPES,
  ): Promise<string> {
    const { bodyLimitBytes, smallBodyLimitBytes, requestTimeoutMs: ms } = this.environment;
    const bytes = size === 'standard' ? bodyLimitBytes : smallBodyLimitBytes;
    const { bodyBytes } = size === 'operator' ? NO_LIMITS : await this.limits.get(callerOf(request).tenantId);
    const isOfTenant = bodyBytes !== null && bodyBytes < bytes;
    assertMediaType(request.raw, mediaTypes);
    const holder = size === 'operator' ? 'operator' : holderOf(request);
    const body = await readBody(
      request.raw,
      isOfTenant ? { bytes: bodyBytes, ms, name: 'bodyBytes' } : { bytes, ms },
      {
        leaseFor: (onRefused) => this.memory.lease(holder, onRefused),
        turnFor: async (length) => {
          await this.unstored.hold(request, holder, length);
          await this.turns.take(holder, length);
        },
        onUnused: () => this.unstored.release(request),
        beginFine: () => fineBodies.begin(holder),
      },
    );
    if (!isUtf8(body)) throw new EnvelopeError('parse', 'the body is not UTF-8', null);
    return body.toString('utf8');
  }

  /** The content of a request's body is stored, or will not be. */
  release(request: FastifyRequest): void {
    this.unstored.release(request);
  }

  /** The parsed body of a request to the REST API. */
  json(request: FastifyRequest, mediaTypes = ['application/json']): Promise<unknown> {
    return this.parsed(request, 'small', mediaTypes);
  }

  /** The parsed body of an operator's request. Throws `invalid-params` also for a text that Postgres cannot store. */
  async ofOperator(request: FastifyRequest): Promise<unknown> {
    const body = await this.parsed(request, 'operator', ['application/json']);
    assertPlainText(body, '');
    return body;
  }

  /** A small body is not counted until it is stored. */
  private async parsed(
    request: FastifyRequest,
    size: 'small' | 'operator',
    mediaTypes: readonly string[],
  ): Promise<unknown> {
    try {
      return parseJsonBody(await this.text(request, size, mediaTypes));
    } finally {
      this.release(request);
    }
  }
}

/** Maximum size of a body, and maximum time until it is complete. */
interface BodyLimit {
  bytes: number;
  ms: number;
  /** Name of the tenant's limit, if it is one. */
  name?: string;
}

/**
 * The whole body of a request.
 * @param limit a larger body is refused with `too-large`, a slower one with `request-timeout`; both name it. The rest of it is
 *   dropped after the answer (`LingeringResponse`).
 * @param leaseFor makes the lease that counts its bytes until its turn has come; a refusal ends the reading
 * @param turnFor resolves when the complete body may be parsed
 * @param onUnused its turn has come after the body was refused
 * @param beginFine counts a body in small chunks, unless there are too many
 * @throws CallerLeft if the connection breaks before the end
 */
function readBody(
  request: IncomingMessage,
  limit: BodyLimit,
  {
    leaseFor,
    turnFor,
    onUnused,
    beginFine,
  }: {
    leaseFor: (onRefused: (refusal: ProtocolError) => void) => BodyLease;
    turnFor: (length: number) => Promise<void>;
    onUnused: () => void;
    beginFine: () => (() => void) | undefined;
  },
): Promise<Buffer> {
  const { bytes, ms } = limit;
  if (Number(request.headers['content-length']) > bytes) return Promise.reject(tooLarge(limit));
  return new Promise((resolve, reject) => {
    const body = new Chunks();
    const late = setTimeout(() => finish(() => reject(tooSlow(ms))), ms);
    const lease = leaseFor((refusal) => finish(() => reject(refusal)));
    let endFine: (() => void) | undefined;
    let hasEnded = false;
    let isOver = false;
    const stop = (): void => {
      if (!hasEnded) endFine?.();
      hasEnded = true;
      clearTimeout(late);
      request.removeAllListeners('data').off('end', onEnd).off('error', onGone).off('close', onGone);
    };
    const finish = (outcome: () => void): void => {
      isOver = true;
      stop();
      lease.end();
      outcome();
      // A refused body may still wait for its turn.
      body.clear();
    };
    const countIfFine = (): void => {
      if (hasEnded || endFine || !isFine(request)) return;
      endFine = beginFine();
      if (!endFine) finish(() => reject(tooFine()));
    };
    const onEnd = (): void => {
      stop();
      void turnFor(body.length).then(() => {
        const hasLeft = body.length > SMALL_WORK_BYTES && request.socket.destroyed;
        if (isOver) onUnused();
        else if (hasLeft) onGone();
        else finish(() => resolve(body.whole()));
      });
    };
    const onGone = (): void =>
      finish(() => reject(new CallerLeft('the caller has disconnected before its request was handled')));
    request.on('end', onEnd).on('error', onGone).on('close', onGone);
    request.on('data', (chunk: Buffer) => {
      body.add(chunk);
      if (body.length > bytes) finish(() => reject(tooLarge(limit)));
      else {
        lease.take(chunk.length);
        countIfFine();
      }
    });
  });
}

/** The refusal of a request that is larger than a limit. @param limit its size, and its name if it is the tenant's own */
export function tooLarge({ bytes, name }: Pick<BodyLimit, 'bytes' | 'name'>): ProtocolError {
  const limit = name === undefined ? 'the limit of' : `the limit ${name} of this tenant,`;
  return new ProtocolError(
    'too-large',
    `the request body is larger than ${limit} ${String(bytes)} bytes: send less, or large content by URL`,
    { metadata: { ...(name !== undefined && { limit: name }), limitBytes: String(bytes) } },
  );
}

const tooFine = (): ProtocolError =>
  new ProtocolError(
    'overloaded',
    'too many request bodies in small chunks arrive now: send larger chunks, or again later',
    { retryAfterSeconds: 1 },
  );

function tooSlow(ms: number): ProtocolError {
  return new ProtocolError(
    'request-timeout',
    `the request body did not arrive within ${String(ms)} ms: send it again, in one go`,
    { metadata: { limitMs: String(ms) } },
  );
}

function assertMediaType({ headers }: IncomingMessage, mediaTypes: readonly string[]): void {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw refuse(`Content-Encoding ${encoding}`, 'send the body uncompressed');
  const contentType = headers['content-type'];
  if (contentType === undefined) {
    if (hasNoBody(headers)) return;
    throw refuse('a body without Content-Type', 'send application/json');
  }
  const type = essenceOf(contentType);
  if (!mediaTypes.includes(type)) {
    throw refuse(`Content-Type ${type.slice(0, 100)}`, 'send application/json');
  }
  const charset = charsetOf(contentType);
  if (charset !== undefined && !CHARSETS.has(charset)) {
    throw refuse(`charset ${charset.slice(0, 100)}`, 'send UTF-8');
  }
}

/** An empty body needs no type. The envelope then reports that the body is missing. */
const hasNoBody = (headers: IncomingMessage['headers']): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;

const refuse = (what: string, remedy: string): ProtocolError =>
  new ProtocolError('media-type', `${what} is not supported: ${remedy}`);
