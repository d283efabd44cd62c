export { connectionConfig, SESSION_SETTINGS, sessionConfig } from './session-settings.js';
