import type { DescMethod } from '@bufbuild/protobuf';
import type { Server, UntypedHandleCall } from '@grpc/grpc-js';
import { serviceOf } from './protobuf.js';

/** Registers a service. Its requests and answers are bytes. */
export function addService(server: Server, name: string, handlers: Record<string, UntypedHandleCall>): void {
  const bytes = (value: Buffer): Buffer => value;
  const rpcs = Object.keys(handlers).map((rpc) => {
    const { methodKind } = methodOf(name, rpc);
    const definition = {
      path: `/${name}/${rpc}`,
      requestStream: methodKind === 'client_streaming' || methodKind === 'bidi_streaming',
      responseStream: methodKind === 'server_streaming' || methodKind === 'bidi_streaming',
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: bytes,
      responseDeserialize: bytes,
    };
    return [rpc, definition] as const;
  });
  server.addService(Object.fromEntries(rpcs), handlers);
}

/** The RPC of that name. Throws if there is none, which is a bug. */
export function methodOf(service: string, rpc: string): DescMethod {
  const method = serviceOf(service).methods.find(({ name }) => name === rpc);
  if (!method) throw new Error(`no RPC ${service}/${rpc} in descriptors.ts`);
  return method;
}
