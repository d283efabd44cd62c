export { CronTimes } from './cron-times.js';
