/** The server of the queue and the channels does not answer; the same call may succeed a moment later. */
export class MessagingUnavailableError extends Error {
  override readonly name = 'MessagingUnavailableError';
}
