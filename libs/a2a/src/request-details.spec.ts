import { SendMessageRequest } from './model.js';
import { detailsFromJson, detailsOf, detailsToJson } from './request-details.js';

const detailsIn = (json: object) => {
  const { metadata, configuration } = SendMessageRequest.fromJSON(json);
  return detailsOf({ metadata, configuration });
};

describe('the members of a request beside its message', () => {
  it.each([
    [{ metadata: { tone: 'formal', deep: { list: [1, null] } } }],
    [{ configuration: { acceptedOutputModes: ['text/plain'] } }],
    [{ configuration: { historyLength: 0 } }],
    [{ metadata: { a: 1 }, configuration: { returnImmediately: true, historyLength: 3 } }],
  ])('is stored and read again: %j', (json) => {
    const details = detailsIn(json);
    const stored = detailsToJson(details!);
    expect(stored).toEqual(json);
    expect(detailsToJson(detailsFromJson(stored))).toEqual(json);
  });

  it.each([[{}], [{ metadata: {} }], [{ configuration: {} }], [{ metadata: { 'baton.sender': 'agent' } }]])(
    'is nothing in %j',
    (json) => {
      expect(detailsIn(json)).toBeUndefined();
    },
  );

  it('has no metadata that only the platform writes', () => {
    const details = detailsIn({ metadata: { 'baton.approver': { name: 'Eve' }, own: 1 } });
    expect(details?.metadata).toEqual({ own: 1 });
  });

  it('has no secret of a push notification config', () => {
    const taskPushNotificationConfig = {
      id: 'hook',
      url: 'https://user:hunter2@hooks.example:8443/hunter2?key=hunter2',
      token: 'hunter2',
      authentication: { scheme: 'Bearer', credentials: 'hunter2' },
    };
    const details = detailsIn({ configuration: { taskPushNotificationConfig } });
    expect(detailsToJson(details!)).toEqual({
      configuration: {
        taskPushNotificationConfig: {
          id: 'hook',
          url: 'https://hooks.example:8443',
          authentication: { scheme: 'Bearer' },
        },
      },
    });
  });

  it.each([
    ['metadata', { metadata: { large: 'é'.repeat(131_100) } }],
    ['configuration', { configuration: { acceptedOutputModes: ['x'.repeat(262_200)] } }],
  ])('is refused if it is too large, and the refusal names %s', (field, json) => {
    expect(() => detailsIn(json)).toThrow(new RegExp(`${field}: has 262\\d+ bytes of JSON`));
  });
});
