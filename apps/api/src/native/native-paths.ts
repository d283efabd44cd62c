import { AGENT_VERSION_PATHS } from './agent-versions.controller.js';
import { AGENT_PATHS } from './agents.controller.js';
import { DEAD_LETTER_PATHS } from './dead-letters.controller.js';
import type { NativePath } from './native-path.js';
import { REQUEST_PATHS } from './requests.controller.js';
import { SCHEDULE_PATHS } from './schedules.controller.js';
import { SECRET_PATHS } from './secrets.controller.js';

/** Every path of Baton's own. The isolation walk goes through all of them. */
export const NATIVE_PATHS: readonly NativePath[] = [
  ...REQUEST_PATHS,
  ...AGENT_PATHS,
  ...AGENT_VERSION_PATHS,
  ...DEAD_LETTER_PATHS,
  ...SECRET_PATHS,
  ...SCHEDULE_PATHS,
];
