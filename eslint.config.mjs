import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

export default defineConfig(
  { ignores: ['dist/', 'coverage/', '.baton/', 'libs/database/src/generated/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Numbers in messages are plain; everything else must be made text on purpose.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true, ignoreVoidReturningFunctions: true },
      ],
      // `void` marks what is returned on purpose and is nothing.
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      // Nest and the SDK declare their options as classes and take plain objects for them.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      // Nest's modules are classes with a decorator and nothing in them.
      '@typescript-eslint/no-extraneous-class': ['error', { allowWithDecorator: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-imports': 'off',
      // A function may be async only so that what it throws becomes a rejection.
      '@typescript-eslint/require-await': 'off',
      'no-console': 'error',
    },
  },
  {
    // What callers and peers send is bounded before it is parsed: parseJsonBody, or jsonExcess first.
    files: ['apps/api/src/**/*.ts', 'libs/agents/src/**/*.ts', 'libs/tasks/src/**/*.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'JSON', property: 'parse', message: 'Bound it first: see libs/a2a/src/json-limits.ts.' },
      ],
    },
  },
  {
    files: [
      '**/*.spec.ts',
      '**/*.int-spec.ts',
      '**/*.e2e-spec.ts',
      '**/*.fixture.ts',
      '**/testing/**',
      'test/**',
    ],
    rules: {
      'no-restricted-properties': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // They look at what is on the wire, which has no types.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    // What a person at a terminal reads.
    files: ['apps/cli/**', 'apps/local/**', 'libs/database/src/migrate-main.ts', 'test/support/services.ts'],
    rules: { 'no-console': 'off' },
  },
);
