import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { PlatformService } from '@baton/tasks';
import { clock } from '@baton/telemetry';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { QueryPipe, timeQuery } from '../openapi/query-pipe.js';
import { Describe } from '../openapi/route.js';
import { timeSchema } from '../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor, oneMore, pageOf, readPage } from '../rest/paging.js';
import { FORMAT, sendCsv, wantsCsv } from '../rest/usage/csv.js';
import { HOUR_MS, hourOf, UNTIL } from '../rest/usage/hours.js';
import { hasCosts, NO_USAGE, usageGroups } from '../rest/usage/usage-groups.js';

/** A day: the period to read after an alert. */
const DEFAULT_HOURS = 24;

const tenantRow = z
  .object({
    tenant: z.string().describe('Its slug'),
    runs_in_flight: z.int().describe('Slots that it takes now: runs on the queue or at a worker'),
    waiting_runs: z.int().describe('Runs that wait for a slot now'),
    stored_bytes: z.int().nullable().describe('Bytes that it keeps now. Null: they are not counted yet'),
    tasks: z.int().describe('Tasks that have ended'),
    failed: z.int(),
    seconds: z.number().describe('From the creation of each task to its last status'),
    calls: z.int().describe('Calls of models that Baton has made'),
    input_tokens: z.number(),
    output_tokens: z.number(),
    cost: z
      .number()
      .nullable()
      .describe(
        'Of the tokens with a price, with the prices of agents and what agents report. Null: there are no prices',
      ),
    unpriced_tokens: z.number().describe('Tokens of models without a price'),
  })
  .meta({ id: 'TenantRow' });
type TenantRow = z.infer<typeof tenantRow>;
const tenantsUsage = z
  .object({
    since: timeSchema,
    until: timeSchema,
    currency: z.string().nullable().describe('Of all costs. Null: there are no prices'),
    tenants: z.array(tenantRow),
    next_cursor: nextCursor,
  })
  .meta({ id: 'TenantsUsage' });
type Column = keyof TenantRow;
const COLUMNS = Object.keys(tenantRow.shape) as readonly Column[];

const SINCE = timeQuery(
  `Tasks and calls of models since the hour (UTC) of this time. Left out: ${DEFAULT_HOURS} hours ago`,
);
const SORT = new QueryPipe<Column>(
  {
    description: 'The column by which the tenants are sorted, the largest first. `tenant`: by slug',
    schema: { type: 'string', enum: [...COLUMNS], default: 'runs_in_flight' },
  },
  (text, name) => {
    if (text === undefined || text === '') return 'runs_in_flight';
    const column = COLUMNS.find((each) => each === text);
    if (column) return column;
    throw ProtocolError.invalidParams(name, `must be one of ${COLUMNS.join(', ')}`);
  },
);

/** Which tenants take slots, bytes, tokens and money. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/usage')
export class AdminUsageController {
  constructor(
    private readonly platform: PlatformService,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'listTenantsUsage',
    summary:
      'Shows what every tenant takes now, and what it has used of models in some hours. CSV has all tenants. ' +
      'Tasks of the last ten minutes are not counted yet',
    answer: tenantsUsage,
    answerTypes: ['application/json', 'text/csv'],
  })
  @OperatorRoles('read', 'support')
  @Get()
  async usage(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('since', SINCE) from: Date | undefined,
    @Query('until', UNTIL) to: Date | undefined,
    @Query('sort', SORT) sort: Column,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
    @Query('format', FORMAT) format: 'json' | 'csv' | undefined,
  ): Promise<void> {
    const asked = readPage(limit, cursor);
    const now = clock.now();
    const since = hourOf(from ?? new Date(now - DEFAULT_HOURS * HOUR_MS));
    const until = to ? hourOf(to) : new Date(now);
    const { rows, currency } = await this.rows({ since, until });
    const sorted = rows.toSorted(
      (a, b) => (sort === 'tenant' ? 0 : (b[sort] ?? -1) - (a[sort] ?? -1)) || compare(a.tenant, b.tenant),
    );
    if (wantsCsv(request, reply, format)) {
      const titleOf = (column: Column): string =>
        column === 'cost' && currency !== null ? `cost_${currency}` : column;
      const table = sorted.map((row) => COLUMNS.map((column) => row[column]));
      return sendCsv(reply, 'usage-of-tenants', [COLUMNS.map(titleOf), ...table]);
    }
    const start =
      asked.after === undefined ? 0 : sorted.findIndex(({ tenant }) => tenant === asked.after) + 1;
    if (asked.after !== undefined && start === 0) {
      throw ProtocolError.invalidParams('cursor', 'names a tenant that is gone: ask again without it');
    }
    const found = sorted.slice(start, start + oneMore(asked).limit);
    const { page, nextCursor: next } = pageOf(found, ({ tenant }) => tenant, asked);
    await reply.send({
      since: since.toISOString(),
      until: until.toISOString(),
      currency,
      tenants: page,
      next_cursor: next,
    } satisfies z.infer<typeof tenantsUsage>);
  }

  private async rows(during: {
    since: Date;
    until: Date;
  }): Promise<{ rows: TenantRow[]; currency: string | null }> {
    const { modelPrices, modelPricesCurrency } = this.environment;
    const { loads, sums } = await this.platform.readUsage(during);
    const groups = new Map(usageGroups(sums, modelPrices).map((group) => [group.key, group]));
    const isPriced = hasCosts(sums, modelPrices);
    const rows = loads.map(({ tenant, runsInFlight, waitingRuns, storedBytes }) => {
      const used = groups.get(tenant) ?? { ...NO_USAGE, cost: isPriced ? 0 : null };
      return {
        tenant,
        runs_in_flight: runsInFlight,
        waiting_runs: waitingRuns,
        stored_bytes: storedBytes,
        tasks: used.tasks,
        failed: used.failed,
        seconds: used.seconds,
        calls: used.calls,
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        cost: used.cost,
        unpriced_tokens: used.unpriced_tokens,
      };
    });
    return { rows, currency: isPriced ? modelPricesCurrency : null };
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
