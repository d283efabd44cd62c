// The SDK uses Node's Buffer for files in messages. Import this before the SDK.
import { Buffer } from 'buffer/';

(globalThis as { Buffer?: unknown }).Buffer ??= Buffer;
