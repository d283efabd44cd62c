export { ConfigModule } from './config.module.js';
export { Environment, loadEnvironment } from './environment.js';
export { type LocalEnvironment, loadLocalEnvironment } from './local-environment.js';
export { EnvironmentError, type EnvironmentSource, processEnvironment } from './read-settings.js';
export { type SettingsReport, settingsReport, unknownSettings } from './check-settings.js';
export { SECRET_KEYS } from './settings.js';
