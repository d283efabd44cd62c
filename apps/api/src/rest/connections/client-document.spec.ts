import { type FakeApi, startFakeApi } from '../../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../../test/support/api/raw-request.js';

let api: FakeApi;
afterEach(() => api.close());

const ask = async (publicUrl: string) => {
  api = await startFakeApi({ PUBLIC_URL: publicUrl });
  const { status, text } = await rawRequest(`${api.url}/oauth/client.json`, {});
  return { status, json: JSON.parse(text) as Record<string, unknown> };
};

it('describes Baton as a client of authorization servers, at an https URL', async () => {
  expect(await ask('https://baton.example/below')).toEqual({
    status: 200,
    json: {
      client_id: 'https://baton.example/below/oauth/client.json',
      client_name: 'Baton',
      application_type: 'web',
      redirect_uris: ['https://baton.example/below/oauth/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
  });
});

it('has no such document at another URL, which is no client id', async () => {
  expect(await ask('http://baton.example')).toMatchObject({ status: 404 });
});
