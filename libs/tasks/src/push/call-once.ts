import { failureReason } from '@baton/outbound';

/** The answer of a receiver to one request. */
export interface ReceiverReply {
  /** Whether it has answered 2xx. */
  delivered: boolean;
  status: number | null;
  /** Null: there was an answer. */
  error: string | null;
  durationMs: number;
}

/** Calls a receiver once. Never rejects. @param headers those of `DeliverySigner` */
export async function callOnce(
  fetch: typeof globalThis.fetch,
  url: string,
  headers: Record<string, string>,
  body: string,
): Promise<ReceiverReply> {
  const begin = performance.now();
  const answered = (status: number | null, error: string | null): ReceiverReply => ({
    delivered: status !== null && status >= 200 && status < 300,
    status,
    error,
    durationMs: Math.round(performance.now() - begin),
  });
  try {
    const sent = { 'content-type': 'application/json', 'user-agent': 'Baton', ...headers };
    const response = await fetch(url, { method: 'POST', headers: sent, body, redirect: 'manual' });
    await response.body?.cancel();
    return answered(response.status, null);
  } catch (error) {
    return answered(null, failureReason(error) ?? 'the request could not be sent');
  }
}
