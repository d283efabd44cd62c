/** `traceparent` of W3C Trace Context: version 00, and later versions, which begin the same. Groups: trace id, span id, flags. */
export const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;

export const isTraceparent = (text: string): boolean => TRACEPARENT.test(text);

/** The ids of the trace and of the span in a valid `traceparent`, for a line of the log. */
export const traceIdsOf = (traceparent: string | null | undefined): { traceId?: string; spanId?: string } =>
  traceparent ? { traceId: traceparent.slice(3, 35), spanId: traceparent.slice(36, 52) } : {};
