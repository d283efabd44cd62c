import { ProtocolError } from './protocol-error.js';
import { SendMessageRequest } from './model.js';
import { withoutReserved } from './task.js';

/** The parts of a send request besides its message (A2A 1.0 §3.2.1, §3.2.2). */
export type RequestDetails = Pick<SendMessageRequest, 'metadata' | 'configuration'>;

/** Maximum size of the details of a request, in bytes of JSON. They are stored with the message and read with each attempt. */
const MAX_DETAILS_BYTES = 256 * 1024;

/**
 * The details of a request as its agent gets them: without metadata that only the platform writes (`baton.…`), and of a push
 * notification config only its id, its scheme of authentication and the origin of its URL. The rest of it may be secret.
 * @returns undefined if the request has only its message
 * @throws ProtocolError `invalid-params` if they are larger than `MAX_DETAILS_BYTES`
 */
export function detailsOf({ metadata, configuration }: RequestDetails): RequestDetails | undefined {
  const push = configuration?.taskPushNotificationConfig;
  const details: RequestDetails = {
    metadata: withoutReserved(metadata),
    configuration: configuration && {
      ...configuration,
      taskPushNotificationConfig: push && {
        ...push,
        tenant: '',
        taskId: '',
        url: URL.parse(push.url)?.origin ?? '',
        token: '',
        authentication: push.authentication && { scheme: push.authentication.scheme, credentials: '' },
      },
    },
  };
  const { metadata: given = {}, configuration: asked = {} } = detailsToJson(details);
  const isEmpty = (value: object): boolean => Object.keys(value).length === 0;
  if (isEmpty(given) && isEmpty(asked)) return undefined;
  assertSmall('metadata', given);
  assertSmall('configuration', asked);
  return details;
}

function assertSmall(field: string, value: object): void {
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes <= MAX_DETAILS_BYTES) return;
  throw ProtocolError.invalidParams(
    field,
    `has ${bytes} bytes of JSON, and the maximum is ${MAX_DETAILS_BYTES}: send large data in a part of the message`,
  );
}

/** ProtoJSON of the details, as they are stored. */
export const detailsToJson = ({ metadata, configuration }: RequestDetails): DetailsJson =>
  SendMessageRequest.toJSON({ tenant: '', message: undefined, metadata, configuration }) as DetailsJson;

/** @param json as `detailsToJson` returns it; unset: the request had only its message */
export function detailsFromJson(json: unknown): RequestDetails {
  const { metadata, configuration } = SendMessageRequest.fromJSON(json ?? {});
  return { metadata, configuration };
}

/** ProtoJSON of the details of a request. */
export interface DetailsJson {
  metadata?: object;
  configuration?: object;
}
