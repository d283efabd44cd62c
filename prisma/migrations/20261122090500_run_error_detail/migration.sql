-- AlterTable
ALTER TABLE "runs" ADD COLUMN "error_detail" JSON;
