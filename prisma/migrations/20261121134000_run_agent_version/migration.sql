-- AlterTable
ALTER TABLE "runs" ADD COLUMN "agent_version" INTEGER;
