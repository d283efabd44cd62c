import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { type DescMethod, toBinary } from '@bufbuild/protobuf';
import { type Server, type ServerDuplexStream, status as Status } from '@grpc/grpc-js';
import { addService, methodOf } from './grpc-services.js';
import { decodeMessage, encodeMessage, protoFiles } from './protobuf.js';

/** Both versions: older tools ask for the alpha alone. They differ only in their name. */
const REFLECTIONS = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

/** Maximum number of requests of one stream. A tool sends a few dozen. */
const MAX_QUESTIONS = 1_000;

/** Server reflection: tools such as grpcurl read the services from it. It is public, as the specification is. */
export class GrpcReflection {
  private readonly byName = new Map<string, FileDescriptorProto>();
  private readonly bySymbol = new Map<string, FileDescriptorProto>();

  /** @param services the full names of the services to list */
  constructor(private readonly services: readonly string[]) {
    for (const file of protoFiles()) {
      this.byName.set(file.name, file);
      for (const symbol of symbolsOf(file)) this.bySymbol.set(symbol, file);
    }
  }

  register(server: Server): void {
    for (const service of REFLECTIONS) {
      const { input, output } = methodOf(service, 'ServerReflectionInfo');
      const reflect = (call: ServerDuplexStream<Buffer, Buffer>): void => {
        let questions = 0;
        call.on('data', (bytes: Buffer) => {
          questions += 1;
          const answer = questions > MAX_QUESTIONS ? undefined : this.answerIn({ input, output }, bytes);
          if (!answer) call.emit('error', { code: Status.INVALID_ARGUMENT, details: 'not a valid question' });
          else if (!call.write(answer)) {
            call.pause();
            call.once('drain', () => call.resume());
          }
        });
        call.on('end', () => call.end());
      };
      addService(server, service, { ServerReflectionInfo: reflect });
    }
  }

  /** Undefined for another message. */
  private answerIn(
    { input, output }: Pick<DescMethod, 'input' | 'output'>,
    bytes: Buffer,
  ): Buffer | undefined {
    try {
      return encodeMessage(output, this.answerTo(decodeMessage(input, bytes)));
    } catch {
      return undefined;
    }
  }

  private answerTo(question: Record<string, unknown>): object {
    const asked = { originalRequest: question };
    const { fileByFilename, fileContainingSymbol, listServices } = question;
    if (listServices !== undefined) {
      return { ...asked, listServicesResponse: { service: this.services.map((name) => ({ name })) } };
    }
    const file = this.byName.get(String(fileByFilename)) ?? this.bySymbol.get(String(fileContainingSymbol));
    if (!file) {
      const errorCode = Status.NOT_FOUND;
      return { ...asked, errorResponse: { errorCode, errorMessage: 'there is nothing of that name' } };
    }
    const files = [...this.withImports(file)].map((each) =>
      Buffer.from(toBinary(FileDescriptorProtoSchema, each)).toString('base64'),
    );
    return { ...asked, fileDescriptorResponse: { fileDescriptorProto: files } };
  }

  /** The file and all that it imports, also indirectly. */
  private withImports(
    file: FileDescriptorProto,
    found = new Set<FileDescriptorProto>(),
  ): Set<FileDescriptorProto> {
    found.add(file);
    for (const name of file.dependency) {
      const imported = this.byName.get(name);
      if (imported && !found.has(imported)) this.withImports(imported, found);
    }
    return found;
  }
}

/** Full names of what a file declares: services with their RPCs, messages and enums. */
function symbolsOf({ package: scope, service, messageType, enumType }: FileDescriptorProto): string[] {
  return [
    ...service.flatMap(({ name, method }) => [
      `${scope}.${name}`,
      ...method.map((rpc) => `${scope}.${name}.${rpc.name}`),
    ]),
    ...[...messageType, ...enumType].map(({ name }) => `${scope}.${name}`),
  ];
}
