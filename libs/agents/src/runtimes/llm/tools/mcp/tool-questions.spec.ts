import { questionsOf } from './tool-questions.js';

const asks = (url: string) => ({
  who: { method: 'elicitation/create', params: { mode: 'url', message: 'Open it.', url } },
});
const SERVER = 'https://crm.example/mcp';

describe('an address that a server asks a person to open', () => {
  it.each([
    'http://127.0.0.1/x',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://localhost:8080/',
    'http://admin.localhost./',
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://0.0.0.0/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[fd00::1]/',
  ])('is refused if it leads inside: %s', (url) => {
    expect(() => questionsOf(asks(url), SERVER)).toThrow(
      /it asks a person a question that Baton cannot show: the address .* inside of a network/,
    );
  });

  it.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:https://a.example/1',
    'http://',
  ])('is refused if it is not on the web: %s', (url) => {
    expect(() => questionsOf(asks(url), SERVER)).toThrow('an address that is not on the web');
  });

  it.each([
    ['https://sign.example/c/1', SERVER],
    ['https://8.8.8.8/', SERVER],
    ['https://[2606:4700::1111]/', SERVER],
    ['http://127.0.0.1:9000/consent', 'http://127.0.0.1:8000/mcp'],
    ['https://10.example.com/', SERVER],
  ])('is asked if it is public, or at the host of the server: %s', (url, server) => {
    expect(questionsOf(asks(url), server)).toEqual({ who: { message: 'Open it.', url } });
  });
});
