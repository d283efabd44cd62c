import { PLATFORM_ACTOR } from '@baton/database';
import { ProtocolError } from '@baton/a2a';
import { type Caller, callerOf, JwtService, TokenService } from '@baton/identity';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Req,
  UseGuards,
} from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { FastifyReply } from 'fastify';
import { ControlInMemory } from '../../../../libs/identity/src/control.fixture.js';
import { tokenService, TokensInMemory } from '../../../../libs/identity/src/token.fixture.js';
import { BearerGuard } from './bearer.guard.js';
import { BearerStrategy } from './bearer-strategy.js';

@Controller()
@UseGuards(BearerGuard)
class WhoAmI {
  @Get()
  get(@Req() request: object): Caller {
    return callerOf(request);
  }
}

@Catch(ProtocolError)
class Refusal implements ExceptionFilter {
  catch(error: ProtocolError, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<FastifyReply>().status(401).send(error.message);
  }
}

describe('bearer guard', () => {
  const tokens = new TokensInMemory();
  const service = tokenService(tokens, new ControlInMemory());
  const jwts = { verify: jest.fn<Promise<Caller>, [string]>() };
  let app: NestFastifyApplication;

  beforeAll(async () => {
    const module = await Test.createTestingModule({
      controllers: [WhoAmI],
      providers: [
        BearerStrategy,
        { provide: TokenService, useValue: service },
        { provide: JwtService, useValue: jwts },
      ],
    }).compile();
    app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter());
    app.useGlobalFilters(new Refusal());
    await app.init();
    await app.getHttpAdapter().getInstance().ready();
  });
  afterAll(() => app.close());

  const get = async (authorization?: string, url = '/') => {
    const headers = authorization === undefined ? {} : { authorization };
    const { statusCode, headers: answered, body } = await app.inject({ url, headers });
    return { status: statusCode, challenge: answered['www-authenticate'], body };
  };
  const issue = (expiresAt: Date | null = null) =>
    service.issue({ tenantId: 'acme', name: 'x', scopes: ['admin'], expiresAt }, PLATFORM_ACTOR);

  it('lets a good token through, whatever the case of the scheme', async () => {
    const { secret, token } = await issue();
    for (const scheme of ['Bearer', 'bearer']) {
      const { status, body } = await get(`${scheme} ${secret}`);
      expect(status).toBe(200);
      expect(JSON.parse(body)).toEqual({
        tenantId: 'acme',
        principal: { kind: 'token', key: `token:${token.id}` },
        scopes: ['admin'],
        credential: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
    }
  });

  it('asks for a token where there is none', async () => {
    for (const header of [undefined, '', 'Basic Og==']) {
      expect(await get(header)).toEqual({
        status: 401,
        challenge: 'Bearer realm="baton"',
        body: 'a bearer token is required: send "Authorization: Bearer <token>"',
      });
    }
  });

  it('answers with the fault of a token', async () => {
    const expired = await issue(new Date(0));
    const revoked = await issue();
    await service.revoke('acme', revoked.token.id, PLATFORM_ACTOR);
    const invalid = (why: string) => ({
      status: 401,
      challenge: `Bearer realm="baton", error="invalid_token", error_description="${why}"`,
      body: why,
    });
    expect(await get('Bearer nonsense')).toEqual(invalid('the token is not known'));
    expect(await get(`Bearer ${expired.secret}`)).toEqual(invalid('the token has expired'));
    expect(await get(`Bearer ${revoked.secret}`)).toEqual(invalid('the token was revoked'));
  });

  it('answers a malformed header with 401 as well', async () => {
    const { secret } = await issue();
    expect(await get(`Bearer ${secret} x`)).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="baton", error="invalid_request"',
    });
  });

  it('asks the issuers that are trusted about a JWT', async () => {
    const caller: Caller = { tenantId: 'acme', principal: { kind: 'user', key: 'user:x' }, scopes: [] };
    jwts.verify.mockResolvedValueOnce(caller);
    expect(JSON.parse((await get('Bearer a.b.c')).body)).toEqual(caller);
    jwts.verify.mockRejectedValueOnce(new ProtocolError('unauthenticated', 'the token has expired'));
    expect(await get('Bearer a.b.c')).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="baton", error="invalid_token", error_description="the token has expired"',
    });
    // The token may be valid, so the caller is not asked to sign in again.
    jwts.verify.mockRejectedValueOnce(new ProtocolError('unavailable', 'later'));
    expect(await get('Bearer a.b.c')).toMatchObject({ challenge: undefined, body: 'later' });
    expect(jwts.verify.mock.calls).toEqual(Array(3).fill(['a.b.c']));
  });

  it('takes no token from the URL', async () => {
    const { secret } = await issue();
    expect((await get(undefined, `/?access_token=${secret}`)).status).toBe(401);
  });
});
