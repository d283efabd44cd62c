import type { AnswerContext, Codec, Framing } from '../codec.js';
import { ProtocolError } from '../errors.js';
import type { Task } from '../model.js';
import type { DecodedCall, Results, StreamItem, UnaryOperationName } from '../operation.js';
import type { OperationRules } from '../operation-rules.js';
import { Fields } from './fields.js';

/** How the params of one method become an operation. */
export type ReadParams = (params: Fields) => DecodedCall;

/** How the result of every unary operation is written. */
export type WriteResults = {
  [K in UnaryOperationName]: (result: Results[K], context: AnswerContext) => unknown;
};

/** How a profile says things its own way: on the canonical model, so that it holds in every family alike. */
export interface Shape {
  task(task: Task, context: AnswerContext): Task;
  /** What each item of a stream becomes: none, one or several items. */
  stream(context: AnswerContext): (item: StreamItem) => StreamItem[];
}

/** What a family must say about itself; a profile may speak it in its own shape and framing. */
export interface Family {
  version: string;
  methods: ReadonlyMap<string, ReadParams>;
  results: WriteResults;
  encodeItem: (item: StreamItem) => unknown;
  shape?: Shape;
  framing?: Framing;
  rules?: Partial<OperationRules>;
}

const NOTHING_KNOWN: AnswerContext = { agentId: '' };
const AS_IT_IS: Shape = { task: (task) => task, stream: () => (item) => [item] };

export function defineCodec({ version, methods, results, encodeItem, ...ways }: Family): Codec {
  const { shape = AS_IT_IS, framing = { enveloped: true }, rules = {} } = ways;
  const write = shape === AS_IT_IS ? results : shapeResults(results, shape);
  return {
    version,
    framing,
    rules,
    methods: [...methods.keys()],
    hasMethod: (method) => methods.has(method),
    decode(method, params) {
      const read = methods.get(method);
      if (!read) throw ProtocolError.methodNotFound(method);
      return read(Fields.ofParams(params));
    },
    encodeResult: (operation, result, context = NOTHING_KNOWN) => write[operation](result, context),
    streamEncoder(context = NOTHING_KNOWN) {
      const shapeItem = shape.stream(context);
      return (item) =>
        shapeItem(item).map((shaped) => ({ sequence: shaped.sequence, result: encodeItem(shaped) }));
    },
    encodeItem,
  };
}

/** The methods with a check that comes before their params are read. */
export const checkFirst = (
  methods: ReadonlyMap<string, ReadParams>,
  check: (params: Fields) => void,
): ReadonlyMap<string, ReadParams> =>
  new Map(
    [...methods].map(([method, read]): [string, ReadParams] => [
      method,
      (params) => {
        check(params);
        return read(params);
      },
    ]),
  );

const shapeResults = (results: WriteResults, shape: Shape): WriteResults => ({
  ...results,
  sendMessage: (result, context) =>
    results.sendMessage(
      result.$case === 'task' ? { ...result, value: shape.task(result.value, context) } : result,
      context,
    ),
  getTask: (task, context) => results.getTask(shape.task(task, context), context),
  cancelTask: (task, context) => results.cancelTask(shape.task(task, context), context),
  listTasks: ({ tasks, ...page }, context) =>
    results.listTasks({ tasks: tasks.map((task) => shape.task(task, context)), ...page }, context),
});
