export function answerTo(request: { id?: unknown; method: string }, quirk?: object): unknown;
