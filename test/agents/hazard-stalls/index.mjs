export { default } from '../hazard/index.mjs';
