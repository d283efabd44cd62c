import type { Codec } from '../codec.js';
import { ProtocolError } from '../errors.js';
import type { OperationCall, StreamItem, UnaryOperationName, UnaryOperations } from '../operation.js';
import { Fields } from './fields.js';

/** How the params of one method become an operation. */
export type ReadParams = (params: Fields) => OperationCall;

/** How the result of every unary operation is written. */
export type WriteResults = { [K in UnaryOperationName]: (result: UnaryOperations[K]['result']) => unknown };

/** What a family must say about itself. */
export interface Family {
  version: string;
  methods: ReadonlyMap<string, ReadParams>;
  results: WriteResults;
  encodeItem: (item: StreamItem) => unknown;
}

export const defineCodec = ({ version, methods, results, encodeItem }: Family): Codec => ({
  version,
  hasMethod: (method) => methods.has(method),
  decode(method, params) {
    const read = methods.get(method);
    if (!read) throw ProtocolError.methodNotFound(method);
    return read(Fields.ofParams(params));
  },
  encodeResult: (operation, result) => results[operation](result),
  encodeItem,
});
