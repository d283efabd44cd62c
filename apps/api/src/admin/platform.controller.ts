import { Message, parseFields } from '@baton/a2a';
import { BoundHosts, type DeadLetter, type HostBinding, OperatorDesk, OperatorLetters } from '@baton/tasks';
import { Controller, Delete, Get, Param, Post, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly } from '../access/access.guard.js';
import { BodyReader } from '../http/body.js';
import { OnManagementPort } from '../management/management-port.js';
import { readFlag } from '../rest/query.js';
import { encodeRunError } from '../rest/requests/request-json.js';

type Json = Record<string, unknown>;

const hostBody = z.strictObject({
  tenant: z.string(),
  agent: z.string(),
  public: z.boolean().default(false),
});

/** Host names and the agents that they lead to. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/hosts')
export class AdminHostsController {
  constructor(
    private readonly hosts: BoundHosts,
    private readonly bodies: BodyReader,
  ) {}

  /** By name: `{hosts: [{host, tenant, tenant_id, agent, public}]}`. `?tenant=` names one tenant. */
  @Get()
  async list(@Query('tenant') slug?: string): Promise<Json> {
    const bound = await this.hosts.list(slug);
    return { hosts: bound.map((host) => ({ ...encodeHost(host), tenant: host.tenant })) };
  }

  /** Binds the name to an agent of a tenant, or changes its binding. */
  @Put(':host')
  async bind(@Param('host') host: string, @Req() request: FastifyRequest): Promise<Json> {
    const body = parseFields(hostBody, await this.bodies.ofOperator(request), '', 'the body');
    const bound = await this.hosts.bind(host, body, operatorActorOf(request));
    return { ...encodeHost(bound), tenant: bound.tenant };
  }

  /** Answers with the binding there was. */
  @Delete(':host')
  async unbind(@Param('host') host: string, @Req() request: FastifyRequest): Promise<Json> {
    return encodeHost(await this.hosts.unbind(host, operatorActorOf(request)));
  }
}

/** Workers, and the runs of all tenants that used up their attempts. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin')
export class AdminPlatformController {
  constructor(
    private readonly desk: OperatorDesk,
    private readonly letters: OperatorLetters,
  ) {}

  /** Those that have given a sign of life in the last hour: `{workers}`. */
  @Get('workers')
  async listWorkers(): Promise<Json> {
    const workers = await this.desk.listWorkers();
    return {
      workers: workers.map(({ id, host, pid, concurrency, running, startedAt, seenAt }) => ({
        ...{ id, host, pid, concurrency, running },
        ...{ started_at: startedAt.toISOString(), seen_at: seenAt.toISOString() },
      })),
    };
  }

  /** The latest first, at most 1,000: `{dead_letters}`. `?tenant=` names one tenant. */
  @Get('dead-letters')
  async listLetters(@Query('tenant') slug?: string): Promise<Json> {
    return { dead_letters: (await this.letters.list(slug)).map(encodeLetter) };
  }

  /** With its `message` in the JSON of A2A 1.0, and the `error` of its agent's code; either may be null. */
  @Get('dead-letters/:runId')
  async showLetter(@Param('runId') runId: string): Promise<Json> {
    const { message, error, ...letter } = await this.letters.show(runId);
    return {
      ...encodeLetter(letter),
      message: message && Message.toJSON(message),
      error: error && { name: error.name, ...encodeRunError(error, true) },
    };
  }

  /** 201 with the new task. Refused if it was redelivered before, unless `?again=true`. */
  @Post('dead-letters/:runId/redeliver')
  async redeliver(
    @Param('runId') runId: string,
    @Req() request: FastifyRequest,
    @Query('again') again?: string,
  ): Promise<Json> {
    const by = operatorActorOf(request);
    const { taskId, agentId } = await this.letters.redeliver(runId, readFlag('again', again), by);
    return { run_id: runId, request_id: taskId, agent_id: agentId };
  }
}

const encodeHost = ({ host, agent, tenantId, public: open }: HostBinding): Json => ({
  ...{ host, tenant_id: tenantId, agent, public: open },
});

const encodeLetter = ({ tenant, ...letter }: DeadLetter & { tenant: string }): Json => ({
  ...{ run_id: letter.runId, tenant, tenant_id: letter.tenantId },
  ...{ request_id: letter.taskId, agent_id: letter.agentId, owner: letter.owner },
  ...{ reason: letter.reason, attempts: letter.attempts, died_at: letter.diedAt.toISOString() },
  redelivered_at: letter.redeliveredAt?.toISOString() ?? null,
  redelivered_as: letter.redeliveredAt && letter.redeliveredTaskId,
});
