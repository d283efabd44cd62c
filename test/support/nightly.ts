/** Whether this is the Jest project `nightly`: then a test runs its long form (CONTRIBUTING.md#tests). */
export const NIGHTLY = process.env.TEST_PROJECT === 'nightly';
