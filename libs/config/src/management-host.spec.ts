import { isManagementHost } from './management-host.js';

it.each([
  undefined,
  'localhost',
  'localhost:9090',
  '127.0.0.1:9090',
  '10.1.2.3',
  '[::1]:9090',
  'api:9090',
  'baton-api.default.svc:9090',
  'baton-api.default.svc.cluster.local',
  'API.Internal.',
  'Ops.Example.com:9090',
])('%s may read a port of operators', (host) => {
  expect(isManagementHost(host, ['ops.example.com'])).toBe(true);
});

it.each([
  'evil.example:9090',
  'ops.example.com.evil.example',
  '127.0.0.1.evil.example',
  'localhost.evil.example:9090',
  'xinternal.example',
  '[evil.example]',
])('%s may not, because it can be the name of a web page', (host) => {
  expect(isManagementHost(host, ['ops.example.com'])).toBe(false);
});
