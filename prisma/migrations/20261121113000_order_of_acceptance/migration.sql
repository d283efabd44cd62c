-- Two messages accepted within one millisecond keep their order. Wider precision rewrites neither table nor index.
ALTER TABLE "tasks" ALTER COLUMN "created_at" SET DATA TYPE TIMESTAMPTZ(6);
ALTER TABLE "runs" ALTER COLUMN "created_at" SET DATA TYPE TIMESTAMPTZ(6);
