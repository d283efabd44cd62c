import { providerFetch } from './provider-fetch.js';

const encoder = new TextEncoder();

it('quotes a refusal whose connection stays open', async () => {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(encoder.encode('{"error":{"message":"no such key"}}')),
  });
  const fetch = providerFetch(async () => new Response(body, { status: 401 }), 'chat');
  await expect(fetch('https://provider.test')).rejects.toMatchObject({
    complaint: { status: 401, message: 'no such key' },
  });
});
