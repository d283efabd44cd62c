import { randomUUID } from 'node:crypto';
import { newTask, openStores, sql, type Stores } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

it('the tenants that have a task are found by its id alone', async () => {
  const [one, other] = [randomUUID(), randomUUID()];
  await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${one}', 'one'), ('${other}', 'other')`);
  const [first, second] = [newTask({ tenantId: one }), newTask({ tenantId: other })];
  // A caller of version 0.1 chooses the id.
  const same = newTask({ tenantId: other, task: { id: first.task.id } });
  for (const input of [first, second, same]) await stores.tasks.create(input);
  expect(await stores.tasks.tenantsOf(first.task.id)).toEqual(['one', 'other']);
  expect(await stores.tasks.tenantsOf(second.task.id)).toEqual(['other']);
  expect(await stores.tasks.tenantsOf(randomUUID())).toEqual([]);
  expect(await stores.tasks.tenantsOf('no-uuid')).toEqual([]);
});
