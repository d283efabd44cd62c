import { healthText } from './health';

const health = (more: object) => ({
  tasks: 5,
  retrying: 2,
  given_up: 1,
  status: null,
  error: null,
  ...more,
});

describe('the health of a webhook', () => {
  it('is said in words', () => {
    expect(healthText(null)).toBe('nothing delivered yet');
    expect(healthText(health({ retrying: 0, given_up: 0 }))).toBe('ok');
    expect(healthText(health({ status: 500 }))).toBe('failing for 3 of 5 tasks: HTTP 500');
    expect(healthText(health({ status: 500, error: 'no answer' }))).toBe(
      'failing for 3 of 5 tasks: no answer',
    );
  });

  it('names no answer where there was none', () => {
    expect(healthText(health({}))).toBe('failing for 3 of 5 tasks');
  });
});
