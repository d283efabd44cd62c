import { Oracle } from '../../../../test/oracle/oracle.js';
import { openStores, type Stores } from '../stores.fixture.js';
import { StoreAdapter } from './store-adapter.fixture.js';

const SEED = process.env.ORACLE_SEED ?? 's5';
const STEPS = Number(process.env.ORACLE_STEPS ?? 2000);
/** Time limit of a step, with its part of the search for a shorter sequence. On a busy machine a step takes 20 ms. */
const MAX_STEP_MS = 500;
/** How many times as many steps it may take until everything has happened. */
const PATIENCE = 3;

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

it(
  'does with tasks and runs what the model says, whatever comes in whatever order',
  async () => {
    const oracle = new Oracle(new StoreAdapter(stores), SEED);
    await oracle.run(STEPS, STEPS * PATIENCE);
    expect({ never: oracle.coverage.missing(), unnamed: oracle.coverage.unnamed() }).toEqual({
      never: [],
      unnamed: [],
    });
  },
  STEPS * MAX_STEP_MS,
);
