import { Module } from '@nestjs/common';
import { AccessModule } from '../access/access.module.js';
import { ConsoleModule } from '../console/console.module.js';
import { HttpModule } from '../http/http.module.js';
import { BullBoardSite } from './bull-board-site.js';
import { BullBoardApiController } from './bull-board-api.controller.js';
import { BullBoardController } from './bull-board.controller.js';

@Module({
  imports: [AccessModule, HttpModule, ConsoleModule],
  controllers: [BullBoardController, BullBoardApiController],
  providers: [BullBoardSite],
})
export class BullBoardModule {}
