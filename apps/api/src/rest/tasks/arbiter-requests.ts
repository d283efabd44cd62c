import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import { Alias } from '../../openapi/route.js';

/** The words of Arbiter's clients for members of answers. */
const WORDS: Readonly<Record<string, string>> = { task_id: 'request_id', tasks: 'requests' };
/** Members that list tasks. All others, such as the task in the JSON of A2A, stay as they are. */
const LISTS: ReadonlySet<string> = new Set(['tasks', 'descendants', 'ancestors', 'spans']);

const renamed = (answer: object): object =>
  Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [
      WORDS[name] ?? name,
      LISTS.has(name) ? (value as object[]).map(renamed) : (value as unknown),
    ]),
  );

/** A stream has no answer to rename: its events name no task. */
const arbiterWords = {
  intercept: (_context: ExecutionContext, next: CallHandler): Observable<unknown> =>
    next
      .handle()
      .pipe(map((answer: unknown) => (typeof answer === 'object' && answer ? renamed(answer) : answer))),
};

/**
 * The routes of a controller of `/v1/tasks` under the name that Arbiter's clients use: `/v1/requests`, with `request_id` for `task_id` and
 * `requests` for `tasks` (wire contract ). Nothing else uses this name.
 */
export function arbiterRequests(tasks: Type<object>): Type<object> {
  @Alias(
    '`/v1/requests` is another name of `/v1/tasks`, for clients of Arbiter. Its answers say `request_id` for `task_id`, and ' +
      '`requests` for `tasks`. New clients use `/v1/tasks`.',
  )
  @UseInterceptors(arbiterWords)
  @Controller('v1/requests')
  class ArbiterRequests extends tasks {}
  return ArbiterRequests;
}
