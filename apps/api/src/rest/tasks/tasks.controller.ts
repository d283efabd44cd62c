import {
  decodePageToken,
  encodePageToken,
  isTerminal,
  OPERATIONS,
  ProtocolError,
  requireScope,
  STATE_NAMES,
  stateNamed,
  type TaskState,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { TaskDetails, TaskForks, TaskListing } from '@baton/tasks';
import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { AgentFinder } from '../../core/agent-finder.js';
import { CallRunner } from '../../core/call-runner.js';
import { flagQuery, nameQuery, QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT } from '../paging.js';
import { encodeModelCall } from './model-call-json.js';
import { encodeRun, encodeRunError } from './run-json.js';
import { encodeSteps } from './step-json.js';
import { maySeeCode } from './may-see-code.js';
import { TaskCallResolver } from './task-call-resolver.js';
import { linksOf } from './task-links.js';
import { encodeCounts, encodeListed, encodeParked, encodeWaiting, taskList } from './task-summary-json.js';
import { encodeDescendant, encodeWholeTask, wholeTask } from './whole-task-json.js';

/** Maximum characters of a text to search for: more than what a person types. */
const MAX_TEXT = 200;

const STATE = new QueryPipe(
  { description: 'Only tasks in this state', schema: { type: 'string', enum: [...STATE_NAMES] } },
  (text, name) => {
    if (text === undefined || text === '') return undefined;
    const state = stateNamed(text);
    if (state !== undefined) return state;
    throw ProtocolError.invalidParams(name, `must be one of ${STATE_NAMES.join(', ')}`);
  },
);
const AGENT = nameQuery('Only tasks of this agent: its slug or id');
const CONTEXT = nameQuery('Only tasks of this context. Needs `agent`');
const OWNER = nameQuery('Only tasks that this principal has made: its key');
const TEXT = new QueryPipe(
  {
    description:
      'Only tasks with this text, in upper or lower case: in the text of the first message (up to 64 KiB), in the text of the ' +
      'status, in the last error of the agent, in the answer (artifacts up to 32 KiB), in the id of the context, or at the beginning of ' +
      'the id. `hit` says where. One call looks at the newest 10,000 tasks at most; `next_cursor` continues',
    schema: { type: 'string', maxLength: MAX_TEXT },
  },
  (text, name) => {
    if (text === undefined || text.trim() === '') return undefined;
    // Postgres refuses U+0000 in a text.
    if (text.length <= MAX_TEXT && !text.includes('\0')) return text.trim();
    throw ProtocolError.invalidParams(name, `must be a text of at most ${MAX_TEXT} characters`);
  },
);
const ANSWERABLE = flagQuery(
  'Only tasks that wait for an answer which the token may give, the oldest first, each with its `question` or `approvals`. Needs ' +
    '`agents:call`. Questions to other agents are not there. A page may have fewer than `limit`; `next_cursor` continues',
);
const PARKED = flagQuery('Only tasks that are parked: they wait for other code of their agent');
const COUNTS = flagQuery(
  'True: the answer has `counts`, the number of tasks in each state with the other filters, whatever `state` is. Each is counted in an ' +
    'index, up to 1,000. Not with `q` or `answerable`',
);
const SINCE_TIME = timeQuery('Only tasks whose status is not older');
const UNTIL_TIME = timeQuery('Only tasks whose status is older');

/** A tenant's tasks, of all its agents and profiles, without the envelopes of A2A: the list, and one task. */
@Controller('v1/tasks')
export class TasksController {
  constructor(
    private readonly calls: TaskCallResolver,
    private readonly finder: AgentFinder,
    private readonly runner: CallRunner,
    private readonly listing: TaskListing,
    private readonly details: TaskDetails,
    private readonly forks: TaskForks,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'listTasks',
    summary:
      'Lists the tasks, the newest status first. With `answerable`, those that wait for you, the oldest first',
    answer: taskList,
  })
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
    @Query('state', STATE) state: TaskState | undefined,
    @Query('agent', AGENT) agent: string | undefined,
    @Query('context_id', CONTEXT) contextId: string | undefined,
    @Query('since', SINCE_TIME) since: Date | undefined,
    @Query('until', UNTIL_TIME) until: Date | undefined,
    @Query('owner', OWNER) owner: string | undefined,
    @Query('parked', PARKED) isParked: boolean,
    @Query('q', TEXT) text: string | undefined,
    @Query('answerable', ANSWERABLE) isAnswerable: boolean,
    @Query('counts', COUNTS) hasCounts: boolean,
  ): Promise<z.infer<typeof taskList>> {
    const caller = callerOf(request);
    if (isAnswerable) requireScope(OPERATIONS.sendMessage.scopes, caller.scopes);
    const after = cursor ? decodePageToken(cursor, 'cursor') : undefined;
    const page = { limit, after };
    if (contextId !== undefined && agent === undefined) {
      throw ProtocolError.invalidParams('context_id', 'needs `agent` as well: a context belongs to an agent');
    }
    if (since && until && until <= since) {
      throw ProtocolError.invalidParams('until', 'must be later than `since`');
    }
    const agentId = await this.finder.idOf(caller, agent);
    const filter = {
      ...(state !== undefined && { state }),
      ...(agentId !== undefined && { agentId }),
      ...(contextId !== undefined && { contextId }),
      ...(since && { since }),
      ...(until && { until }),
      ...(owner !== undefined && { owner }),
      ...(isParked && { parked: true }),
    };
    if (hasCounts && (isAnswerable || text !== undefined)) {
      throw ProtocolError.invalidParams('counts', 'cannot be combined with `q` or `answerable`');
    }
    if (isAnswerable) {
      if (text !== undefined) throw ProtocolError.invalidParams('q', 'cannot be combined with `answerable`');
      const { tasks, next } = await this.listing.answerable(caller, page, filter);
      return { tasks: tasks.map(encodeWaiting), next_cursor: next ? encodePageToken(next) : null };
    }
    if (text !== undefined) {
      const { tasks, searched, next } = await this.listing.search(caller, page, text, filter);
      return {
        tasks: tasks.map(encodeListed),
        searched,
        next_cursor: next ? encodePageToken(next) : null,
      };
    }
    const counts = hasCounts && (await this.listing.counts(caller, filter));
    const { tasks, more } = await this.listing.list(caller, page, filter);
    const last = tasks.at(-1)?.task;
    const statusAt = last?.status?.timestamp;
    return {
      tasks: tasks.map(encodeListed),
      ...(counts && { counts: encodeCounts(counts) }),
      next_cursor:
        more && statusAt ? encodePageToken({ statusAt: new Date(statusAt), taskId: last.id }) : null,
    };
  }

  @Describe({
    id: 'getTask',
    summary:
      'Shows the whole task, with its parent, its children, its runs, its calls of models, its durable steps and the last ' +
      "error in the agent's code",
    answer: wholeTask,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id')
  async get(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof wholeTask>> {
    const exchange = { request, reply };
    const call = await this.calls.resolve('getTask', id, exchange);
    const asked = { tenant: '', id, historyLength: undefined };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    const isAuthor = maySeeCode(call);
    const details = await this.details.read(call, id, isAuthor);
    const { relations, descendants, error, runs, modelCalls, steps } = details;
    const { modelPrices: prices, modelPricesCurrency } = this.environment;
    return {
      ...encodeWholeTask(task, call.agent.id, relations),
      descendants: descendants.map(encodeDescendant),
      ...(await linksOf(this.forks, call.tenantId, task)),
      error: error ? encodeRunError(error, isAuthor) : null,
      model_calls: modelCalls.map((each) => encodeModelCall(each, prices)),
      currency: prices ? modelPricesCurrency : null,
      ...(steps && {
        steps: encodeSteps(steps, task.status !== undefined && isTerminal(task.status.state)),
      }),
      ...encodeParked(runs[0]?.parked),
      runs: runs.map(encodeRun),
    };
  }
}
