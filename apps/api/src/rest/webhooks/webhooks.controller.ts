import { type Caller, callerOf } from '@baton/identity';
import { type Webhook, Webhooks } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { textQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, oneMore, pageOf, readPage } from '../paging.js';
import { reaches } from '../tokens/token-json.js';
import {
  decodeNewWebhook,
  decodeWebhookPatch,
  decodeWebhookRotation,
  encodeListedWebhook,
  encodeWebhook,
  encodeWebhookDelivery,
  encodeWebhookTest,
  newWebhook,
  webhookAnswer,
  webhookDeliveries,
  webhookList,
  webhookPatch,
  webhookRedelivery,
  webhookRotation,
  webhookTest,
  webhookWithSecret,
} from './webhook-json.js';

const TASK = textQuery('Only the events of this task: its id');

type WebhookAnswer = z.infer<typeof webhookAnswer>;
type WebhookWithSecret = z.infer<typeof webhookWithSecret>;

/** A tenant's webhooks, for its administrators: a webhook gets the tasks of all callers in the tenant. */
@RequireScope('admin')
@Controller('v1/webhooks')
export class WebhooksController {
  constructor(
    private readonly webhooks: Webhooks,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({ id: 'listWebhooks', summary: 'Lists the webhooks, the oldest first', answer: webhookList })
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof webhookList>> {
    const caller = callerOf(request);
    const asked = readPage(limit, cursor);
    const found = await this.webhooks.page(caller, oneMore(asked));
    const { page, nextCursor } = pageOf(found, ({ id }) => id, asked);
    const webhooks = page.filter(existsFor(caller));
    const health = await this.webhooks.health(caller, webhooks);
    return {
      webhooks: webhooks.map((webhook) => encodeListedWebhook(webhook, health.get(webhook.id))),
      next_cursor: nextCursor,
    };
  }

  @Describe({
    id: 'createWebhook',
    summary: 'Creates a webhook for tasks that are accepted from now on. Its `secret` is never shown again',
    body: newWebhook,
    answer: webhookWithSecret,
    answerHeaders: ['Location'],
  })
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<WebhookWithSecret> {
    const spec = decodeNewWebhook(await this.bodies.json(request));
    const { webhook, secret } = await this.webhooks.create(callerOf(request), spec, actorOf(request));
    reply.status(201).header('location', `/v1/webhooks/${webhook.id}`);
    return { ...encodeWebhook(webhook), secret };
  }

  @Describe({ id: 'getWebhook', summary: 'Shows a webhook', answer: webhookAnswer })
  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<WebhookAnswer> {
    return encodeWebhook(await this.webhooks.find(callerOf(request), id));
  }

  @Describe({
    id: 'changeWebhook',
    summary: 'Changes the given members of a webhook; `{"enabled": false}` stops its deliveries',
    body: webhookPatch,
    answer: webhookAnswer,
  })
  @Patch(':id')
  async change(@Param('id') id: string, @Req() request: FastifyRequest): Promise<WebhookAnswer> {
    const patch = decodeWebhookPatch(await this.bodies.json(request));
    return encodeWebhook(await this.webhooks.change(callerOf(request), id, patch, actorOf(request)));
  }

  @Describe({
    id: 'rotateWebhookSecret',
    summary: 'Gives a webhook a new `secret`. The old one also signs for a while',
    body: webhookRotation,
    answer: webhookWithSecret,
  })
  @Post(':id/rotate')
  @HttpCode(200)
  async rotate(@Param('id') id: string, @Req() request: FastifyRequest): Promise<WebhookWithSecret> {
    const overlapMs = decodeWebhookRotation(await this.bodies.json(request));
    const caller = callerOf(request);
    const { webhook, secret } = await this.webhooks.rotate(caller, id, overlapMs, actorOf(request));
    return { ...encodeWebhook(webhook), secret };
  }

  @Describe({
    id: 'testWebhook',
    summary: 'Calls the receiver once with an event of the type `webhook.test`, and shows its answer',
    answer: webhookTest,
  })
  @Post(':id/test')
  @HttpCode(200)
  async test(@Param('id') id: string, @Req() request: FastifyRequest): Promise<z.infer<typeof webhookTest>> {
    return encodeWebhookTest(await this.webhooks.test(callerOf(request), id, actorOf(request)));
  }

  @Describe({
    id: 'listWebhookDeliveries',
    summary:
      'Lists the tasks that the webhook is notified of, the newest first, with the last answer of its receiver. With `task` only this task, ' +
      'with the newest requests and their answers',
    answer: webhookDeliveries,
  })
  @Get(':id/deliveries')
  async deliveries(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
    @Query('task', TASK) task: string | undefined,
  ): Promise<z.infer<typeof webhookDeliveries>> {
    const caller = callerOf(request);
    const asked = readPage(limit, cursor);
    const found = await this.webhooks.deliveriesOf(caller, id, { ...oneMore(asked), task });
    const { page, nextCursor } = pageOf(found, ({ taskId }) => taskId, asked);
    const tries = task === undefined ? undefined : await this.webhooks.triesOf(caller, id, task);
    const deliveries = page.map((each) => encodeWebhookDelivery(each, tries));
    return { deliveries, next_cursor: nextCursor };
  }

  @Describe({
    id: 'redeliverWebhook',
    summary:
      'Delivers again, now: the events that the receiver has not taken, of one task or of the newest 100. For a task of which it ' +
      'has all events, the last one',
    answer: webhookRedelivery,
  })
  @Post(':id/redeliver')
  @HttpCode(200)
  async redeliver(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Query('task', TASK) task: string | undefined,
  ): Promise<z.infer<typeof webhookRedelivery>> {
    return { tasks: await this.webhooks.redeliver(callerOf(request), id, task, actorOf(request)) };
  }

  @Describe({ id: 'deleteWebhook', summary: 'Deletes a webhook and its undelivered events' })
  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id') id: string, @Req() request: FastifyRequest): Promise<void> {
    await this.webhooks.remove(callerOf(request), id, actorOf(request));
  }
}

/** Webhooks of agents that do not exist for the caller do not exist either. */
const existsFor =
  (caller: Caller) =>
  ({ agents }: Webhook): boolean =>
    reaches(caller, agents);
