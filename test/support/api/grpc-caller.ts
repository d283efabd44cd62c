import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientOptions,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  status as Status,
} from '@grpc/grpc-js';
import { methodOf } from '../../../apps/api/src/grpc/grpc-services.js';
import { decodeMessage, encodeMessage, messageTypeOf } from '../../../apps/api/src/grpc/protobuf.js';

/** The service of A2A 1.0. */
export const V1_0_SERVICE = 'lf.a2a.v1.A2AService';
/** The service of A2A 0.3. */
export const V0_3_SERVICE = 'a2a.v1.A2AService';

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at the wire
type Json = Record<string, any>;

/** How a call ended. */
export interface GrpcEnd {
  /** Name of the status. */
  status: string;
  message: string;
  /** JSON of `google.rpc.Status.details`. */
  details: Json[];
  metadata: Metadata;
}

/** The messages of a stream, and how it ended. */
export interface GrpcReading {
  call: ClientReadableStream<Buffer>;
  messages: Json[];
  headers: Metadata | undefined;
  end: Promise<GrpcEnd>;
}

interface AskOptions extends CallOptions {
  service?: string;
  metadata?: Record<string, string>;
}

/** Calls a gRPC port with messages as JSON. */
export class GrpcCaller {
  readonly client: Client;

  constructor(address: string, options: ClientOptions = {}, secure?: ChannelCredentials) {
    // Each caller has its own connection.
    this.client = new Client(address, secure ?? credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      ...options,
    });
  }

  /** The JSON of the answer, or how the call failed. */
  ask(rpc: string, json: object, { service = V1_0_SERVICE, metadata, ...options }: AskOptions = {}) {
    const { input, output } = methodOf(service, rpc);
    return new Promise<{ json: Json; headers: Metadata | undefined; end: GrpcEnd }>((resolve) => {
      let headers: Metadata | undefined;
      let answer: Json = {};
      let failure: ServiceError | null = null;
      const call = this.client.makeUnaryRequest(
        `/${service}/${rpc}`,
        () => encodeMessage(input, json),
        (bytes) => decodeMessage(output, bytes),
        {},
        metadataOf(metadata),
        options,
        (error, value) => {
          failure = error;
          answer = value ?? {};
        },
      );
      call.on('metadata', (received: Metadata) => (headers = received));
      call.on('status', ({ code, details, metadata: trailers }) => {
        setImmediate(() =>
          resolve({ json: answer, headers, end: endOf(failure ?? { code, details, metadata: trailers }) }),
        );
      });
    });
  }

  /** Opens a stream and collects its messages. */
  stream(rpc: string, json: object, { service = V1_0_SERVICE, metadata, ...options }: AskOptions = {}) {
    const { input, output } = methodOf(service, rpc);
    const call = this.client.makeServerStreamRequest(
      `/${service}/${rpc}`,
      () => encodeMessage(input, json),
      (bytes: Buffer) => bytes,
      {},
      metadataOf(metadata),
      options,
    );
    const reading: GrpcReading = {
      call,
      messages: [],
      headers: undefined,
      end: new Promise((resolve) => {
        call.on('error', () => undefined);
        call.on('status', (ended) => setImmediate(() => resolve(endOf(ended))));
      }),
    };
    call.on('metadata', (received: Metadata) => (reading.headers = received));
    call.on('data', (bytes: Buffer) => reading.messages.push(decodeMessage(output, bytes)));
    return reading;
  }

  close(): void {
    this.client.close();
  }
}

function metadataOf(entries: Record<string, string> = {}): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries({ authorization: 'Bearer caller', ...entries })) {
    if (value !== '') metadata.set(key, value);
  }
  return metadata;
}

function endOf({ code, details, metadata }: Pick<ServiceError, 'code' | 'details' | 'metadata'>): GrpcEnd {
  const [bytes] = metadata.get('grpc-status-details-bin');
  const status = bytes instanceof Buffer ? decodeMessage(messageTypeOf('google.rpc.Status'), bytes) : {};
  return { status: Status[code], message: details, details: (status.details ?? []) as Json[], metadata };
}
