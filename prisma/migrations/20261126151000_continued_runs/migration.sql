-- The head of the log when the run began its present execution. NULL: it has had one only, and its turn began with it. Processes of the last
-- release do not read it: they take artifacts of earlier executions for output of a dead attempt.
ALTER TABLE "runs" ADD COLUMN "base_sequence" INTEGER;
