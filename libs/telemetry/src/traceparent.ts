/** `traceparent` of W3C Trace Context: version 00, and later versions, which begin the same. Groups: trace id, span id, flags. */
export const TRACEPARENT = /^[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/;

export const isTraceparent = (text: string): boolean => TRACEPARENT.test(text);
