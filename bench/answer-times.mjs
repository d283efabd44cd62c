// npm run bench:answer-times: does the duration of an answer reveal whether another tenant has a thing?
// PAIRS (80) of calls per kind of call. Exits with an error if one does.
import { createRequire } from 'node:module';
import { numberSetting } from './number-setting.mjs';

const require = createRequire(import.meta.url);
require('../test/support/load-typescript.js');
const { measureAnswerTimes } = require('../test/isolation/answer-times.ts');

const unfair = await measureAnswerTimes(numberSetting('PAIRS', 80));
console.log(
  unfair.length
    ? `Answer times reveal whether a thing exists:\n${unfair.join('\n')}`
    : 'Answer times reveal nothing.',
);
process.exit(unfair.length ? 1 : 0);
