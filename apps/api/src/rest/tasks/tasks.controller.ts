import {
  OPERATIONS,
  type OperationName,
  ProtocolError,
  SPEC_RULES,
  type Task,
  type TaskState,
  decodePageToken,
  encodePageToken,
  errorWire,
  parseFields,
  isTerminal,
  isUuid,
  requireScope,
  sseRecord,
  STATE_NAMES,
  stateNamed,
} from '@baton/a2a';
import { askedIn, callDetail, callRecordDetail, stepDetail } from '@baton/agents';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import {
  AgentDirectory,
  ArtifactPages,
  continuedBy,
  firstMessageOf,
  forkedFrom,
  undoneBy,
  ParkedTasks,
  TaskForks,
  TaskListing,
  TaskReplays,
  TaskTraces,
} from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope, RequireScopeToo } from '../../access/access.guard.js';
import { actorOf } from '../../access/actor.js';
import { CallRunner } from '../../core/call-runner.js';
import { lastEventId, traceparent } from '../../core/call-headers.js';
import { type Exchange, type RequestContext } from '../../core/call-resolver.js';
import { AgentFinder } from '../../core/agent-finder.js';
import { BodyReader, holderOf } from '../../http/body-reader.js';
import { Failures } from '../../http/failures.js';
import { ReadMemoryPool } from '../../http/read-memory-pool.js';
import { type HttpExchange, logContextOf } from '../../http/requests.js';
import { SseOutput } from '../../streams/sse-output.js';
import { flagQuery, nameQuery, QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { decodeMessageBody } from '../message-body.js';
import { CURSOR, LIMIT, pageOf } from '../paging.js';
import {
  artifactPage,
  callDetailAnswer,
  callRecordAnswer,
  cancelAnswer,
  cancelRefusal,
  consolePage,
  continuation,
  forkAnswer,
  forkBody,
  encodeArtifactPage,
  encodeCallDetail,
  encodeCallRecord,
  encodeConsoleLine,
  encodeCounts,
  encodeDescendant,
  encodeEvent,
  encodeListed,
  encodeModelCall,
  encodeParked,
  encodeTaskSummary,
  encodeWaiting,
  encodeWholeTask,
  encodeRun,
  encodeRunError,
  encodeSpan,
  encodeSteps,
  eventTimes,
  readArtifactCursor,
  readConsoleCursor,
  replayAnswer,
  resumeAnswer,
  wholeTask,
  taskList,
  sentAgain,
  type TaskLinks,
  traceAnswer,
} from './task-json.js';

const SINCE = new QueryPipe(
  {
    description: 'The sequence of the last event that the caller has',
    schema: { type: 'integer', minimum: 0, default: 0 },
  },
  (text, name) => {
    if (text === undefined || text === '') return 0;
    if (/^\d{1,15}$/.test(text)) return Number(text);
    throw ProtocolError.invalidParams(name, 'must be the sequence of an event: 0, 1, 2 …');
  },
);

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
      'the id. `hit` says where. One call looks at the newest 10,000 tasks at most; `next_cursor` goes on',
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
    '`agents:call`. Questions to other agents are not there. A page may have fewer than `limit`; `next_cursor` goes on',
);
const PARKED = flagQuery('Only tasks that are parked: they wait for other code of their agent');
const COUNTS = flagQuery(
  'True: the answer has `counts`, the number of tasks in each state with the other filters, whatever `state` is. Each is counted in an ' +
    'index, up to 1,000. Not with `q` or `answerable`',
);
const SINCE_TIME = timeQuery('Only tasks whose status is not older');
const UNTIL_TIME = timeQuery('Only tasks whose status is older');

/** Clients of this profile choose ids for their tasks. Their ids name a task here too. */
const PROFILE = 'arbiter';

/** A tenant's tasks, of all its agents and profiles, without the envelopes of A2A. */
@Controller('v1/tasks')
export class TasksController {
  constructor(
    private readonly agents: AgentDirectory,
    private readonly finder: AgentFinder,
    private readonly memory: ReadMemoryPool,
    private readonly runner: CallRunner,
    private readonly listing: TaskListing,
    private readonly artifactPages: ArtifactPages,
    private readonly traces: TaskTraces,
    private readonly parked: ParkedTasks,
    private readonly replays: TaskReplays,
    private readonly forks: TaskForks,
    private readonly failures: Failures,
    private readonly environment: Environment,
    private readonly bodies: BodyReader,
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
    const call = await this.contextFor('getTask', id, exchange);
    const asked = { tenant: '', id, historyLength: undefined };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    const relations = await this.listing.relations(call.tenantId, id);
    const hasChildren = relations.childTaskIds.length > 0;
    const descendants = hasChildren ? await this.listing.descendants(call, id) : [];
    const error = await this.listing.lastError(call.tenantId, id);
    const runs = await this.listing.runs(call.tenantId, id);
    const { modelPrices: prices, modelPricesCurrency } = this.environment;
    const modelCalls = await this.listing.modelCalls(call.tenantId, id);
    const isAuthor = maySeeCode(call);
    return {
      ...encodeWholeTask(task, call.agent.id, relations),
      descendants: descendants.map(encodeDescendant),
      ...(await this.linksOf(call.tenantId, task)),
      error: error ? encodeRunError(error, isAuthor) : null,
      model_calls: modelCalls.map((each) => encodeModelCall(each, prices)),
      currency: prices ? modelPricesCurrency : null,
      ...(isAuthor && {
        steps: encodeSteps(
          await this.listing.steps(call.tenantId, id),
          task.status !== undefined && isTerminal(task.status.state),
        ),
      }),
      ...encodeParked(runs[0]?.parked),
      runs: runs.map(encodeRun),
    };
  }

  @Describe({
    id: 'listArtifacts',
    summary: 'Lists the artifacts as of the first page. A large artifact goes on over several pages',
    answer: artifactPage,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/artifacts')
  async artifacts(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof artifactPage>> {
    const call = await this.contextFor('getTask', id, { request, reply });
    const position = cursor ? readArtifactCursor(cursor) : undefined;
    return encodeArtifactPage(id, await this.artifactPages.page(call, id, position));
  }

  @Describe({
    id: 'listConsoleLines',
    summary: "Lists what the agent's code has written to its console during the task, the oldest line first",
    answer: consolePage,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('agents:write')
  @Get(':id/logs')
  async logs(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof consolePage>> {
    const after = readConsoleCursor(cursor);
    const call = await this.callerWhoSees(id, { request, reply });
    const found = await this.listing.consoleLines(call.tenantId, id, { after, limit: limit + 1 });
    const { page, nextCursor } = pageOf(found, ({ position }) => String(position), {
      limit,
      after: undefined,
    });
    return { task_id: id, lines: page.map(encodeConsoleLine), next_cursor: nextCursor };
  }

  @Describe({
    id: 'streamEvents',
    summary:
      'Streams the events after a number (`Last-Event-ID` wins over `since_seq`), first stored ones, then live ones, until ' +
      'the task has ended or waits for its caller. Each has the sequence as `id`, and as `data` the StreamResponse of ' +
      'A2A 1.0 as JSON with the sequence as `seq`',
    answer: z.string(),
    answerTypes: ['text/event-stream'],
    requestHeaders: ['Last-Event-ID'],
  })
  @RequireScope(...OPERATIONS.subscribeToTask.scopes)
  @Get(':id/events')
  async events(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('since_seq', SINCE) since: number,
  ): Promise<void> {
    const call = await this.contextFor('subscribeToTask', id, { request, reply });
    const after = lastEventId(request) ?? since;
    await this.streamLog({ ...call, lastEventId: after }, id, { request, reply });
  }

  @Describe({
    id: 'listEventTimes',
    summary:
      'Lists when the events after a number were stored, at most 1,000 of them. With `more`, ask again with the last `seq`',
    answer: eventTimes,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/event-times')
  async eventTimes(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('since_seq', SINCE) since: number,
  ): Promise<z.infer<typeof eventTimes>> {
    const call = await this.callerWhoSees(id, { request, reply });
    const { times, more } = await this.listing.eventTimes(call.tenantId, id, since);
    const each = times.map(({ sequence, at }) => ({ seq: sequence, at: at.toISOString() }));
    return { task_id: id, times: each, more };
  }

  @Describe({
    id: 'getTrace',
    summary:
      'Shows what happened in the task, and how long each part took: turns, waits for a slot, attempts, calls of models and tools, ' +
      'questions, children, push deliveries, and for tokens that may change agents durable steps and the deliveries to webhooks',
    answer: traceAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/trace')
  async trace(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof traceAnswer>> {
    const { call, task } = await this.seenTask(id, { request, reply });
    const { spans, modelCalls } = await this.traces.of(call, id, maySeeCode(call));
    const { modelPrices: prices, modelPricesCurrency } = this.environment;
    return {
      task_id: id,
      now: new Date().toISOString(),
      spans: spans.map(encodeSpan),
      model_calls: modelCalls.map((each) => encodeModelCall(each, prices)),
      currency: prices ? modelPricesCurrency : null,
      ...(await this.linksOf(call.tenantId, task)),
    };
  }

  @Describe({
    id: 'getCall',
    summary:
      'Shows what a call of a model or tool has said, or what a step has returned: the answer of the model, the input and output of the tool, ' +
      'or the result. `entry` is that of its span. Without `model`, `tool` and `step` the task has none with that entry',
    answer: callDetailAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('agents:write')
  @Get(':id/trace/:entry')
  async callDetail(
    @Param('id') id: string,
    @Param('entry') entry: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof callDetailAnswer>> {
    const position = readEntry(entry);
    const { tenantId } = await this.callerWhoSees(id, { request, reply });
    const found = await this.traces.entry(tenantId, id, position);
    const asked = askedIn(found?.value);
    const answer = asked && (await this.traces.modelStep(tenantId, id, asked.step));
    const detail = callDetail(found?.value, answer?.value) ?? stepDetail(found?.value);
    return encodeCallDetail(id, position, detail);
  }

  @Describe({
    id: 'getCallRecord',
    summary:
      'Shows what a model was sent in a call, and what it said: system prompt, messages, tools, parameters, answer, reason of the end, ' +
      'tokens. `entry` is that of its span. The setting `record` of the agent says which calls are recorded',
    answer: callRecordAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('records:read')
  @Get(':id/trace/:entry/record')
  async callRecord(
    @Param('id') id: string,
    @Param('entry') entry: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof callRecordAnswer>> {
    const position = readEntry(entry);
    const { tenantId } = await this.callerWhoSees(id, { request, reply });
    const record = callRecordDetail(await this.traces.record(tenantId, id, position));
    return encodeCallRecord(id, position, record);
  }

  @Describe({
    id: 'getReplay',
    summary:
      'Shows what the process of an agent in code would get for the present turn of a task that has not ended, with all recorded steps ' +
      'and their results, to replay them against other code',
    answer: replayAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('agents:write')
  @Get(':id/replay')
  async replay(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof replayAnswer>> {
    const call = await this.contextFor('getTask', id, { request, reply });
    const turn = await this.replays.of(call, id);
    return { task_id: id, turn: turn ? { ...turn } : null };
  }

  @Describe({
    id: 'cancelTask',
    summary: 'Cancels the task. 404 with the reason if it cannot be canceled',
    answer: cancelAnswer,
    otherAnswers: { 404: cancelRefusal },
  })
  @RequireScope(...OPERATIONS.cancelTask.scopes)
  @Post(':id/cancel')
  @HttpCode(200)
  async cancel(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof cancelAnswer | typeof cancelRefusal>> {
    try {
      const exchange = { request, reply };
      const call = await this.contextFor('cancelTask', id, exchange);
      const asked = { tenant: '', id, metadata: undefined };
      await this.runner.run({ operation: 'cancelTask', request: asked }, call, exchange);
      return { task_id: id, cancelled: true };
    } catch (error) {
      if (!(error instanceof ProtocolError) || !NOT_CANCELED.has(error.kind)) throw error;
      reply.status(404);
      return { task_id: id, cancelled: false, reason: error.message };
    }
  }

  @Describe({
    id: 'resumeTask',
    summary:
      'Lets a parked task go on, with the code of its agent that is there now. 409 if it is not parked',
    answer: resumeAnswer,
  })
  @RequireScope(...OPERATIONS.cancelTask.scopes)
  @Post(':id/resume')
  @HttpCode(200)
  async resume(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof resumeAnswer>> {
    const call = await this.contextFor('cancelTask', id, { request, reply });
    if (await this.parked.resume(call, id)) return { task_id: id, resumed: true };
    throw new ProtocolError('conflict', 'The task is not parked: it goes on by itself, or has ended');
  }

  @Describe({
    id: 'sendTaskAgain',
    summary:
      'Sends the first message of the task again, with the metadata and output modes of its request, as a new task of the caller in the same context',
    answer: sentAgain,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':id/send-again')
  @HttpCode(201)
  async sendAgain(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof sentAgain>> {
    const exchange = { request, reply };
    const call = await this.contextFor('getTask', id, exchange);
    const { agent } = call;
    if (agent.status)
      throw new ProtocolError('agent-not-found', `the agent "${agent.slug}" is ${agent.status}`);
    const asked = { tenant: '', id, historyLength: undefined };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    const message = firstMessageOf(task);
    // The stored push config has no secrets: receivers are named again.
    const { metadata, configuration } = (await this.listing.firstDetails(call.tenantId, id)) ?? {};
    const acceptedOutputModes = configuration?.acceptedOutputModes ?? [];
    const sent = await this.runner.run(
      {
        operation: 'sendMessage',
        request: { tenant: '', message, configuration: { ...AT_ONCE, acceptedOutputModes }, metadata },
      },
      { ...call, access: OPERATIONS.sendMessage.access },
      exchange,
    );
    if (sent.$case !== 'task') throw new Error('a send that does not wait is answered with its task');
    return { ...encodeTaskSummary(sent.value, agent.id), again_of: id };
  }

  @Describe({
    id: 'continueTask',
    summary:
      'Goes on with a failed task where it has failed, with the newest version of its agent, as a new task with the same owner and context. ' +
      'Finished steps, answers of models and results of tools are taken over. A repeated call answers with the same task',
    answer: continuation,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':id/continue')
  @HttpCode(201)
  async continueTask(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof continuation>> {
    const exchange = { request, reply };
    await this.callerWhoSees(id, exchange);
    const { taskId, agent } = await this.forks.continueFailed(callerOf(request), id, actorOf(request));
    const call = await this.contextFor('getTask', taskId, exchange);
    const asked = { tenant: '', id: taskId, historyLength: 0 };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    return { ...encodeTaskSummary(task, agent.id), continues: id };
  }

  @Describe({
    id: 'forkTask',
    summary:
      'Makes a new task of the caller from any task: with its history and its journal up to an entry, and with another message or agent if ' +
      'they are given. The context is the same. With `dry_run` it only says what would be done again',
    body: forkBody,
    answer: forkAnswer,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @RequireScopeToo('agents:write')
  @Post(':id/fork')
  @HttpCode(201)
  async fork(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof forkAnswer>> {
    const caller = callerOf(request);
    const body = parseFields(forkBody, await this.bodies.json(request), '', 'the body');
    const message = decodeMessageBody(body.text, body.message);
    await this.callerWhoSees(id, { request, reply });
    const agentId = await this.finder.idOf(caller, body.agent);
    const { taskId, at, doneAgain } = await this.forks.fork(caller, id, {
      at: body.at,
      parts: message?.parts,
      agentId,
      isDryRun: body.dry_run,
    });
    return { task_id: taskId ?? null, fork_of: id, at, done_again: doneAgain };
  }

  /**
   * The context of a call about a task of any agent of the tenant. Throws `task-not-found` for an unknown id or another
   * tenant's.
   */
  private async contextFor(
    operation: OperationName,
    id: string,
    { request, reply }: Exchange,
  ): Promise<RequestContext> {
    const { tenantId, principal, scopes, agents } = callerOf(request);
    const { access } = OPERATIONS[operation];
    logContextOf(request).taskId = id;
    const agent = isUuid(id)
      ? await this.agents.ofTask({ tenantId, principal, scopes, agents }, PROFILE, id)
      : undefined;
    if (!agent) throw ProtocolError.taskNotFound(id);
    return {
      tenantId,
      principal,
      scopes,
      agents,
      access,
      requestId: request.id,
      address: request.ip,
      agent,
      profile: PROFILE,
      rules: { ...SPEC_RULES, taskScope: 'tenant' },
      version: '1.0',
      extensions: [],
      traceparent: traceparent(request),
      memory: this.memory.leaseFor(tenantId, reply.raw, {
        holder: holderOf(request),
        isStrict: access === 'read',
      }),
    };
  }

  /** The context of a call, for callers that see the task. Throws `task-not-found` for others. */
  private async callerWhoSees(id: string, exchange: Exchange): Promise<RequestContext> {
    return (await this.seenTask(id, exchange)).call;
  }

  private async seenTask(id: string, exchange: Exchange): Promise<{ call: RequestContext; task: Task }> {
    const call = await this.contextFor('getTask', id, exchange);
    const asked = { tenant: '', id, historyLength: 0 };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    return { call, task };
  }

  private async linksOf(tenantId: string, task: Task): Promise<TaskLinks> {
    const [continuedAs, undoneAs] = await Promise.all([
      this.forks.continuedAs(tenantId, task),
      this.forks.undoneAs(tenantId, task),
    ]);
    return {
      continues: continuedBy(task) ?? null,
      fork_of: forkedFrom(task) ?? null,
      continued_as: continuedAs ?? null,
      undoes: undoneBy(task) ?? null,
      undone_as: undoneAs ?? null,
    };
  }

  private streamLog(context: RequestContext, id: string, exchange: HttpExchange): Promise<void> {
    const call = { operation: 'subscribeToTask', request: { tenant: '', id } } as const;
    return this.runner.stream(call, context, exchange, {
      output: () => SseOutput.of(exchange.reply),
      item: (item) => [{ sequence: item.sequence, data: sseRecord(encodeEvent(item), item) }],
      error: (error) => {
        const { kind, message } = this.failures.of(error, exchange.request);
        const { reason: status } = errorWire(kind);
        return sseRecord(JSON.stringify({ error: { status, message } }), { event: 'error' });
      },
    });
  }
}

/** Whether the caller may see what shows the code of agents. */
const maySeeCode = ({ scopes }: RequestContext): boolean =>
  scopes.includes('agents:write') || scopes.includes('admin');

function readEntry(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw ProtocolError.invalidParams('entry', 'must be the `entry` of a span: 1, 2, 3 …');
}

const AT_ONCE = {
  taskPushNotificationConfig: undefined,
  historyLength: 0,
  returnImmediately: true,
};

const NOT_CANCELED: ReadonlySet<string> = new Set(['task-not-found', 'task-not-cancelable']);
